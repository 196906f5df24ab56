"""The settings of the runs of a sweep: the file as it is, with the keys that were set; one document for each choice."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from extender.errors import SettingsError
from extender.settings import defaults, document_of, read, text_of

MOST_RUNS = 100


def documents(path: Path | None, changes: Sequence[str]) -> dict[str, str]:
    """Return the text of the settings of each run, by what it changes; "" by "" where nothing is said of settings.

    `changes` are KEY=VALUE[,VALUE...]; every choice of values is a run. Raises SettingsError, naming the key, for what
    the settings do not accept.
    """
    if path is None and not changes:
        return {"": ""}
    text = "" if path is None else text_of(path)
    if path is not None:
        read(text, str(path))
    keys = [change.partition("=") for change in changes]
    for change, (key, equals, values) in zip(changes, keys, strict=True):
        if not (key and equals and values):
            raise SettingsError(f"--set {change}: accepted: KEY=VALUE[,VALUE...], as in policy.fairness=0.5")
        if [other for other, _, _ in keys].count(key) > 1:
            raise SettingsError(f"--set {key}: it is set twice; accepted: once, with one or several values")
    choices = list(product(*([(key, value) for value in values.split(",")] for key, _, values in keys)))
    if len(choices) > MOST_RUNS:
        raise SettingsError(f"--set: {len(choices)} choices of values; accepted: at most {MOST_RUNS}")
    written = {}
    for choice in choices:
        document = _header() if not text else yaml.safe_load(text)
        for key, value in choice:
            _put(document, key, document_of(value, f"--set {key}={value}"))
        title = " ".join(f"{key}={value}" for key, value in choice)
        written[title] = yaml.safe_dump(document)
        read(written[title], f"--set {title}" if title else str(path))
    return written


def _header() -> dict[str, Any]:
    whole = defaults()
    return {key: whole[key] for key in ("apiVersion", "kind")}


def _put(document: dict[str, Any], key: str, value: object) -> None:
    """Set a key such as policy.fairness. Raises SettingsError where a part of it is no mapping."""
    *parts, last = key.split(".")
    section = document
    for part in parts:
        section = section.setdefault(part, {})
        if not isinstance(section, dict):
            raise SettingsError(
                f"--set {key}: {part} is not a mapping; accepted: keys of sections, as in policy.fairness"
            )
    section[last] = value

"""Reads a settings document. One with mistakes is not read at all: every mistake is named."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from extender.errors import SettingsError
from extender.settings.mistakes import contradictions, in_short, wrong_in
from extender.settings.sections import API_VERSION, KIND, Settings

_MOST_CHARACTERS = 2**20
"""As many as a ConfigMap holds bytes."""


def load(path: Path) -> Settings:
    """Read a settings file. Raises SettingsError, one line per mistake."""
    return read(text_of(path), str(path))


def text_of(path: Path) -> str:
    """Return the text of a settings file. Raises SettingsError where it cannot be read."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_CHARACTERS + 1)
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"{path} cannot be read as YAML: {error}") from None
    if len(text) > _MOST_CHARACTERS:
        raise SettingsError(f"{path}: it is too long for settings; accepted: 1 MiB, as a ConfigMap holds")
    return text


def read(text: str, name: str) -> Settings:
    """Return the settings that the text of a file states. Raises SettingsError, one line per mistake."""
    document = document_of(text, name)
    try:
        return parse(document)
    except SettingsError as error:
        raise SettingsError("\n".join(f"{name}: {line}" for line in str(error).splitlines())) from None


def document_of(text: str, name: str) -> Any:  # noqa: ANN401 - whatever YAML says
    """Return the one YAML document that a text is. Raises SettingsError, which says in one line where it is none."""
    try:
        return yaml.load(text, Loader=_NoDuplicates)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mistake = yaml_mistake(error, text)
    except RecursionError:
        mistake = "it is nested too deeply"
    raise SettingsError(f"{name} cannot be read as YAML: {mistake}")


def yaml_mistake(error: yaml.YAMLError, text: str) -> str:
    """Return in one line where a text is no YAML, and why."""
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return f"line {line}: the character {error.character:#x} is not allowed"
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())
    mark = error.problem_mark
    problem = ", ".join(part for part in (error.context, error.problem) if part)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


def parse(document: object) -> Settings:
    """Return the settings that a YAML document states. Raises SettingsError, one line per mistake."""
    if not isinstance(document, dict):
        raise SettingsError(
            f"{in_short(document)} is not a mapping; accepted: apiVersion: {API_VERSION}, kind: {KIND}, ..."
        )
    missing = [
        f"{key}: missing; accepted: {accepted}"
        for key, accepted in (("apiVersion", API_VERSION), ("kind", KIND))
        if key not in document
    ]
    mistakes = missing + list(wrong_in(document, Settings, ""))
    if mistakes:
        raise SettingsError("\n".join(mistakes))
    settings = msgspec.convert(document, Settings)
    if mistakes := list(contradictions(settings)):
        raise SettingsError("\n".join(mistakes))
    return settings


def defaults() -> dict[str, Any]:
    """Return the default settings as the document that would state them."""
    built: dict[str, Any] = msgspec.to_builtins(Settings())
    return built


class _NoDuplicates(yaml.SafeLoader):
    """Refuses a key that stands twice; plain YAML would silently take the last."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401 - whatever YAML says
        try:
            made = super().construct_object(node, deep)
            if isinstance(made, int):
                str(made)  # of too many digits, in another base than ten
            return made
        except (ValueError, AttributeError) as error:  # no date, a number of too many digits; !!timestamp of none
            problem = str(error) if isinstance(error, ValueError) else "this is not of the type that its tag says"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    None, None, "merge keys (<<) are not accepted", key_node.start_mark
                )
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):  # what is not is refused below
                if key in keys:
                    raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands twice", key_node.start_mark)
                keys.add(key)
        return super().construct_mapping(node, deep)

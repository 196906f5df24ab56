"""Where a report goes: whether it can be written there is found out before anything is measured."""

import os
from pathlib import Path
from typing import Any

import click

from extender.errors import DovetailError


class ReportFile(click.Path):
    """A file to be written; makes the folder that it is to be in."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's signature
        """Return the path. Fails with one line where nothing can be written there."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if path.is_dir():  # an empty name is the folder where we are
            self.fail(f"{value!r} is a folder; accepted: a file", param, ctx)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.fail(f"{path}: {error.strerror}", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"{path}: it cannot be written there", param, ctx)
        return path


def write_report(path: Path, text: str) -> None:
    """Write a report. Raises DovetailError, naming the file, where it does not fit; no part of it stays there then."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        if path.is_file():
            path.unlink()
        raise DovetailError(f"the report {path} cannot be written: {error.strerror}") from None

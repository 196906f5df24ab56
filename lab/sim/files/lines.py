"""Reads files line by line: JSON lines, and CSV for jobs of one stage. Bounded memory: a line at a time."""

import codecs
import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from extender.cluster.recording.lines import refuse_gzip
from extender.errors import TraceError
from lab.sim.files.format import RESOURCES, JobLine, StageLine, is_resource
from lab.sim.files.mistakes import decoded, mistake, not_text, shown

LONGEST_LINE = 64 * 2**20
"""The most bytes of a line; a million tasks with a number each are 20 MB."""

Line = TypeVar("Line", bound=msgspec.Struct)

_OF_JOB = ("job", "queue", "arrives", "priority", "recurring")
_FLAT = (*_OF_JOB, "tasks", "seconds", "expected")
_NEEDED = ("job", "seconds")


class _Kind(msgspec.Struct):
    kind: str = ""


def json_lines(path: Path, kind: type[Line]) -> Iterator[tuple[str, Line]]:
    """Yield where each line is (file and line) and what it says; empty lines are passed over.

    Raises TraceError, naming file, line, field and what is accepted.
    """
    decoder = msgspec.json.Decoder(kind)
    for number, (where, text) in enumerate(_texts(path)):
        if not number and _begins_recording(text):
            raise TraceError(f"{path} is a recording (dovetail record); write --workload recording:{path}")
        try:
            line = decoder.decode(text)
            json.loads(text, object_pairs_hook=_each_once, parse_int=str, parse_float=str)
        except msgspec.ValidationError as error:
            raise TraceError(f"{where}: {mistake(error, kind, decoded(text))}") from None
        except _Twice as error:
            raise TraceError(f"{where}: the key {error.args[0]!r} stands twice in one object; accepted: once") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            cut = "" if text.endswith(b"\n") else "; the file ends within this line: is it cut off?"
            problem = not_text(text) or f"not one JSON object: {error}"
            raise TraceError(f"{where}: {problem}{cut}; accepted: one JSON object on each line") from None
        yield where, line


class _Twice(Exception):
    """A key stands twice in an object."""


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for name in names if names.count(name) > 1))
    return made


def _begins_recording(text: bytes) -> bool:
    """Say whether this is the first line of what `dovetail record` writes."""
    try:
        return msgspec.json.decode(text, type=_Kind).kind == "begin"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def csv_jobs(path: Path) -> Iterator[tuple[str, JobLine]]:
    """Yield where each line of a CSV file is, and its job of one stage.

    The columns are job and seconds, and any of queue, arrives, priority, recurring, tasks and expected; every other
    column is what a task demands of the resource of that name. Raises TraceError as `json_lines` does.
    """
    rows = csv.reader(_texts_of_csv(path), strict=True)
    try:
        header = next(filter(None, rows), None)
        if header is None:
            return
        _check_header(f"{path}, line {max(rows.line_num, 1)}", header)
        for fields in filter(None, rows):  # an empty line has none
            where = f"{path}, line {rows.line_num}"
            if len(fields) != len(header):
                raise TraceError(f"{where}: {len(fields)} fields; accepted: {len(header)}, as in the header")
            yield where, _flat_job(where, dict(zip(header, fields, strict=True)))
    except csv.Error as error:
        raise TraceError(
            f"{path}, line {rows.line_num}: {error}; accepted: CSV, in which each quote is closed"
        ) from None


def _check_header(where: str, header: list[str]) -> None:
    """Raise TraceError where columns are missing, unknown, or stand twice."""
    for column in _NEEDED:
        if column not in header:
            columns = shown(", ".join(map(repr, header)))
            raise TraceError(f"{where}: no column {column!r} among {columns}; needed: {', '.join(_NEEDED)}")
    for number, column in enumerate(header):
        if column in header[:number]:
            raise TraceError(f"{where}: column {shown(column)!r} stands twice; accepted: once")
        if column not in _FLAT and not is_resource(column):
            accepted = f"{', '.join(_FLAT)}, and resources: {RESOURCES}"
            raise TraceError(f"{where}: column {shown(column)!r}: there is no such column; accepted: {accepted}")


def _texts_of_csv(path: Path) -> Iterator[str]:
    """Yield each line of a CSV file, an empty one as such: the reader counts them."""
    for where, text in _texts(path, whole=True):
        if problem := not_text(text):
            raise TraceError(f"{where}: {problem}; accepted: CSV in UTF-8")
        yield text.decode("utf-8") if text.strip() else "\n"


def _texts(path: Path, *, whole: bool = False) -> Iterator[tuple[str, bytes]]:
    """Yield each line that is not empty, and where it is; a byte order mark is left out.

    `whole`: empty ones too, and the last line needs its end, else it may be cut.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while text := file.readline(LONGEST_LINE + 1):
                number += 1
                where = f"{path}, line {number}"
                if len(text) > LONGEST_LINE:
                    raise TraceError(f"{where}: over {LONGEST_LINE} bytes; accepted: at most as many")
                if whole and not text.endswith(b"\n") and not not_text(text):
                    raise TraceError(f"{where}: the file ends within this line; end the last line with a newline")
                if number == 1:
                    refuse_gzip(where, text)
                    text = text.removeprefix(codecs.BOM_UTF8)
                if whole or text.strip():
                    yield where, text
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}") from None


class _FlatLine(JobLine):
    """The job of a CSV line: its fields are columns."""

    def field(self, number: int, part: str = "") -> str:
        if part == "demand":
            return " and ".join(self.stages[number].demand)
        return part.removeprefix("demand.") or "job"


def _flat_job(where: str, fields: dict[str, str]) -> JobLine:
    """Return the job of a CSV line; an empty field is one that is not given."""
    given = {name: text for name, text in fields.items() if text != ""}
    for column in _NEEDED:
        if column not in given:
            raise TraceError(f"{where}: field {column}: it is empty; needed: {', '.join(_NEEDED)}")
    stage: dict[str, Any] = {name: given[name] for name in ("tasks", "seconds", "expected") if name in given}
    stage |= {"name": "tasks", "demand": {name: text for name, text in given.items() if name not in _FLAT}}
    for name in ("seconds", "expected"):
        if name in stage:
            stage[name] = _number(where, name, stage[name])
    job: dict[str, Any] = {name: given[name] for name in _OF_JOB if name in given}
    if "arrives" in job:
        job["arrives"] = _number(where, "arrives", job["arrives"])
    try:
        return msgspec.convert(
            job | {"stages": [msgspec.convert(stage, StageLine, strict=False)]}, _FlatLine, strict=False
        )
    except msgspec.ValidationError as error:
        raise TraceError(f"{where}: {mistake(error, JobLine, given)}") from None


def _number(where: str, column: str, text: str) -> float:
    """Return a finite number. Raises TraceError for anything else, also for 1_000, which is one in Python alone."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in text or not text.isascii():
        raise TraceError(f"{where}: field {column}: {shown(text)!r}; accepted: a number")
    return number

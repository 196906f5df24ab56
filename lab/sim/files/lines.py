"""Reads files line by line: JSON lines, and CSV for jobs of one stage. Bounded memory: a line at a time."""

import codecs
import csv
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from extender.errors import TraceError
from lab.sim.files.format import JobLine, StageLine

LONGEST_LINE = 64 * 2**20
"""The most bytes of a line; a million tasks with a number each are 20 MB."""

_LONGEST_SHOWN = 100
"""How many characters of a name an error shows."""

Line = TypeVar("Line", bound=msgspec.Struct)

_PATH = re.compile(r"(.*) - at `\$\.?(.*)`")
_ANY_KEY = "[...]"
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
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
            raise TraceError(f"{where}: {mistake(error, kind, text)}") from None
        except _Twice as error:
            raise TraceError(f"{where}: the key {error.args[0]!r} stands twice in one object; accepted: once") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            cut = "" if text.endswith(b"\n") else "; the file ends within this line: is it cut off?"
            raise TraceError(f"{where}: not one JSON object: {error}{cut}") from None
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
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def csv_jobs(path: Path) -> Iterator[tuple[str, JobLine]]:
    """Yield where each line of a CSV file is, and its job of one stage.

    The columns are job and seconds, and any of queue, arrives, priority, recurring, tasks and expected; every other
    column is what a task demands of the resource of that name. Raises TraceError as `json_lines` does.
    """
    rows = csv.reader(_decoded(path), strict=True)
    try:
        header = next(filter(None, rows), [])
        for column in _NEEDED:
            if column not in header:
                raise TraceError(
                    f"{path}, line {max(rows.line_num, 1)}: no column {column!r}; needed: {', '.join(_NEEDED)}"
                )
        if twice := [column for column in header if header.count(column) > 1]:
            raise TraceError(f"{path}, line {rows.line_num}: column {twice[0]!r} stands twice")
        for fields in filter(None, rows):  # an empty line has none
            where = f"{path}, line {rows.line_num}"
            if len(fields) != len(header):
                raise TraceError(f"{where}: {len(fields)} fields; accepted: {len(header)}, as in the header")
            yield where, _flat_job(where, dict(zip(header, fields, strict=True)))
    except csv.Error as error:
        raise TraceError(f"{path}, line {rows.line_num}: {error}") from None


def _decoded(path: Path) -> Iterator[str]:
    """Yield each line of a CSV file, an empty one as such: the reader counts them."""
    for where, text in _texts(path, whole=True):
        try:
            yield text.decode("utf-8") if text.strip() else "\n"
        except UnicodeDecodeError as error:
            raise TraceError(f"{where}: {error}") from None


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
                    raise TraceError(f"{where}: longer than {LONGEST_LINE} bytes")
                if whole and not text.endswith(b"\n"):
                    raise TraceError(f"{where}: the file ends within this line; end the last line with a newline")
                if number == 1:
                    text = text.removeprefix(codecs.BOM_UTF8)
                if whole or text.strip():
                    yield where, text
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}") from None


def _flat_job(where: str, fields: dict[str, str]) -> JobLine:
    """Return the job of a CSV line; an empty field is one that is not given."""
    given = {name: text for name, text in fields.items() if text != ""}
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
            job | {"stages": [msgspec.convert(stage, StageLine, strict=False)]}, JobLine, strict=False
        )
    except msgspec.ValidationError as error:
        raise TraceError(f"{where}: {mistake(error, JobLine)}") from None


def _number(where: str, column: str, text: str) -> float:
    """Return a finite number. Raises TraceError for anything else."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise TraceError(f"{where}, column {column!r}: {text!r}; accepted: a number")
    return number


def shown(name: str) -> str:
    """Return a name as an error shows it: a long one is cut."""
    return name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}..."


def mistake(
    error: msgspec.ValidationError,
    kind: type[msgspec.Struct],
    line: bytes = b"",
    whole: str = "one JSON object on each line",
) -> str:
    """Return a mistake of a line in words: the field, and what is accepted there, or that `whole` is."""
    found = _PATH.fullmatch(str(error))
    text, field = (found[1], found[2]) if found else (str(error), "")
    if line and field.endswith(_ANY_KEY):
        field = _with_key(kind, field.removesuffix(_ANY_KEY), line)
    if unknown := _UNKNOWN.fullmatch(text):
        accepted = ", ".join(_fields_at(kind, field))
        return f"field {_joined(field, unknown[1])}: there is no such field; accepted: {accepted}"
    if not field and text.startswith("Expected"):  # the line itself is no object
        return f"{text}; accepted: {whole}, with {', '.join(_fields_at(kind, field))}"
    if text.startswith("Invalid enum value"):
        text += f"; accepted: {', '.join(repr(choice) for choice in _choices(kind, field))}"
    return f"field {field}: {text}" if field else text


def _with_key(kind: type[msgspec.Struct], path: str, line: bytes) -> str:
    """Return the path of an object such as stages[0].demand with the first key whose value is not accepted."""
    given = msgspec.json.decode(line)
    for part in re.findall(r"[^.\[\]]+", path):
        given = given[int(part)] if isinstance(given, list) else given[part]
    for key, value in given.items():
        try:
            msgspec.convert({key: value}, _type_at(kind, path))
        except msgspec.ValidationError:
            return f"{path}.{key}"
    return path


def _choices(kind: type[msgspec.Struct], path: str) -> tuple[Any, ...]:
    """Return what is accepted at a path such as stages[0].input.from, which is a Literal."""
    return get_args(_type_at(kind, path))


def _type_at(kind: type[msgspec.Struct], path: str) -> Any:  # noqa: ANN401 - a type, or what annotates one
    """Return the type of the field at a path such as stages[0].demand."""
    parts = re.sub(r"\[[^]]*\]", "", path).rsplit(".", 1)
    above, name = ("", parts[0]) if len(parts) == 1 else parts
    fields = msgspec.structs.fields(_struct_at(kind, above))
    return next(field.type for field in fields if field.encode_name == name)


def _joined(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _fields_at(kind: type[msgspec.Struct], path: str) -> list[str]:
    """Return the fields that are known at a path such as stages[0].input."""
    return [field.encode_name for field in msgspec.structs.fields(_struct_at(kind, path))]


def _struct_at(kind: type[msgspec.Struct], path: str) -> type[msgspec.Struct]:
    """Return what lies at a path such as stages[0].input."""
    for part in filter(None, re.sub(r"\[[^]]*\]", "", path).split(".")):
        names = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
        pending: list[Any] = [get_type_hints(kind)[names[part]]]
        while pending:
            inner = pending.pop()
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                kind = inner
                break
            pending += get_args(inner)
    return kind

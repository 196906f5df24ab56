"""Readers of CSV and TSV files: named columns out; an error names the file, the line and the column."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from extender.errors import TraceError

Columns = Mapping[str, Callable[[str], Any]]
"""The columns to read, and the function that turns a field into a value (`text`, `whole`, `number`, ...)."""

COMMA, TAB = ",", "\t"


def read(path: Path, columns: Columns, *, delimiter: str = COMMA) -> Iterator[list[Any]]:
    """Yield the named columns of each line, converted. Raises TraceError with file, line and column."""
    for _, values in lines(path, columns, delimiter=delimiter):
        yield values


def header(path: Path) -> Sequence[str]:
    """Return the names of a file's columns, none where it is missing or empty: `read` says so. Raises TraceError."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return next(csv.reader(file), [])
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path} cannot be read: {error}") from error


def lines(path: Path, columns: Columns, *, delimiter: str = COMMA) -> Iterator[tuple[str, list[Any]]]:
    """Yield where each line is (file and line, for errors about what it means) and its named columns, converted.

    Raises TraceError with file, line and column.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.reader(file, delimiter=delimiter)
            header = next(rows, None)
            if header is None:
                raise TraceError(f"{path} is empty; a header line with {', '.join(columns)} is needed")
            places = [_place(path, header, column) for column in columns]
            line_count = 0
            for line_count, fields in enumerate(rows, start=1):  # noqa: B007 - says whether there was any
                where = f"{path}, line {rows.line_num}"
                yield where, _convert(where, header, fields, places, columns)
            if not line_count:
                raise TraceError(f"{path} has a header but no lines; is it cut off?")
    except FileNotFoundError:
        raise TraceError(f"{path} does not exist; say where the traces are with --traces") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path} cannot be read: {error}") from error


def text(field: str) -> str:
    """Return the field as it is."""
    return field


def whole(field: str) -> int:
    """Return a whole number of at least 0. Raises ValueError."""
    amount = int(field)
    if amount < 0:
        raise ValueError(field)
    return amount


def count(field: str) -> int:
    """Return a whole number of at least 1. Raises ValueError."""
    amount = whole(field)
    if amount < 1:
        raise ValueError(field)
    return amount


def wholes(field: str) -> tuple[int, ...]:
    """Return whole numbers that stand between semicolons; none where the field is empty. Raises ValueError."""
    return tuple(whole(part) for part in field.split(";")) if field else ()


def number(field: str) -> float:
    """Return a finite number of at least 0. Raises ValueError."""
    amount = float(field)
    if not 0 <= amount < float("inf"):
        raise ValueError(field)
    return amount


def number_or_none(field: str) -> float | None:
    """Return a finite number of at least 0, None where the field is empty. Raises ValueError."""
    return number(field) if field else None


def positive(field: str) -> float:
    """Return a finite number above 0. Raises ValueError."""
    amount = number(field)
    if amount == 0:
        raise ValueError(field)
    return amount


_ACCEPTED: Mapping[Callable[[str], Any], str] = {
    whole: "a whole number, 0 or more",
    count: "a whole number, 1 or more",
    wholes: "whole numbers, 0 or more, with a semicolon between them",
    number: "a number, 0 or more",
    number_or_none: "a number, 0 or more, or nothing",
    positive: "a number above 0",
}


def _place(path: Path, header: Sequence[str], column: str) -> int:
    if column not in header:
        raise TraceError(f"{path}, line 1: no column {column!r}; found {', '.join(header) or 'nothing'}")
    return header.index(column)


def _convert(
    where: str, header: Sequence[str], fields: Sequence[str], places: Sequence[int], columns: Columns
) -> list[Any]:
    """Return the fields of one line in the order of `columns`."""
    if len(fields) < len(header):
        raise TraceError(
            f"{where}, column {header[len(fields)]!r}: missing; "
            f"the line has {len(fields)} of {len(header)} fields: is the file cut off?"
        )
    if len(fields) > len(header):
        raise TraceError(
            f"{where}, column {header[-1]!r}: more follows; the line has {len(fields)} fields for {len(header)}"
        )
    values = []
    for place, (column, convert) in zip(places, columns.items(), strict=True):
        try:
            values.append(convert(fields[place]))
        except ValueError:
            raise TraceError(f"{where}, column {column!r}: {fields[place]!r}; accepted: {_ACCEPTED[convert]}") from None
    return values

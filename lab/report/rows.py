"""Figures for programs (`--json`) and tables for people."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `paper` is the mark to beat, `attainable` what nobody could have more of, where there is one."""

    id: str
    ours: float
    unit: str
    paper: float | None = None
    note: str = ""
    attainable: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What one measurement found, in both forms."""

    rows: Sequence[Row]
    tables: Sequence["Table"] = field(default=())


def to_json(rows: Sequence[Row]) -> str:
    """Return one JSON object that holds all rows."""
    return msgspec.json.encode({"rows": [_fields(row) for row in rows]}).decode()


def _fields(row: Row) -> dict[str, object]:
    """Return the fields of a row; `attainable` only where it is known."""
    fields = asdict(row)
    if row.attainable is None:
        del fields["attainable"]
    return fields

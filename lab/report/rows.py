"""Figures for programs (`--json`) and tables for people."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `paper` is the mark to beat, where there is one."""

    id: str
    ours: float
    unit: str
    paper: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What one measurement found, in both forms."""

    rows: Sequence[Row]
    tables: Sequence["Table"] = field(default=())


def to_json(rows: Sequence[Row]) -> str:
    """Return one JSON object that holds all rows."""
    return msgspec.json.encode({"rows": [asdict(row) for row in rows]}).decode()

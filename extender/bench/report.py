"""What a benchmark says: rows for programs (`--json`), tables for people."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import msgspec
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
    """What one benchmark found, in both forms."""

    rows: Sequence[Row]
    tables: Sequence[Table] = field(default=())


def to_json(rows: Sequence[Row]) -> str:
    """Return one JSON object that holds all rows."""
    return msgspec.json.encode({"rows": [asdict(row) for row in rows]}).decode()

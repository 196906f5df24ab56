"""Which part of the opportunistic starts of a class ended by an eviction, as far as this process has seen."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats

_REMEMBERED_STARTS = 64.0
"""Once so many starts of a class are counted, all that it did before counts half."""


@dataclass(slots=True)
class _Record:
    starts: float = 0.0
    evictions: float = 0.0


class EvictionHistory:
    """Counts by the name of the class; lost at a restart. One thread.

    It grows with the classes that ran on idle room, until `keep` says which of them are there still.
    """

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def note_start(self, task_class: str) -> None:
        """Note that a pod of the class was started on idle room."""
        record = self._records.setdefault(task_class, _Record())
        if record.starts >= _REMEMBERED_STARTS:
            record.starts, record.evictions = record.starts / 2, record.evictions / 2
        record.starts += 1

    def note_eviction(self, task_class: str) -> None:
        """Note that a pod of the class was asked to go."""
        self._records.setdefault(task_class, _Record()).evictions += 1

    def evicted(self, task_classes: Sequence[str]) -> Floats:
        """Return the part of the starts of each class that was evicted [C], in [0, 1]; 0 of those never started.

        A class of which only an eviction is known was started before this process.
        """
        never = _Record()
        records = (self._records.get(name, never) for name in task_classes)
        parts = [min(record.evictions / max(record.starts, record.evictions, 1.0), 1.0) for record in records]
        return np.array(parts, dtype=np.float64)

    def keep(self, task_classes: Collection[str]) -> None:
        """Forget all other classes."""
        self._records = {name: record for name, record in self._records.items() if name in task_classes}

    def __len__(self) -> int:
        """Return how many classes are remembered."""
        return len(self._records)

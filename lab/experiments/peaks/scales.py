"""The sizes of the experiment: FULL is the trace's week, QUICK its first day and a half, to show that it works."""

from collections.abc import Sequence
from dataclasses import dataclass

NODES, CORES = 12, 128.0
_STEPS_A_DAY = 288


@dataclass(frozen=True, slots=True)
class PeakScale:
    """So many `steps` of five minutes; what `auto` is tried with besides its defaults.

    `histories`: samples of warm-up, and of history in all. `budgets`: evictions for each opportunistic pod and hour.
    """

    about: str
    seeds: int
    steps: int
    histories: Sequence[tuple[int, int]]
    budgets: Sequence[float]


_ABOUT = (
    "SURF's jobs of five minutes or more (16 cores each, CPU use per five minutes) on "
    f"{NODES} nodes of {CORES:g} cores, packed by request, first come, first served. "
    "Only CPU: the trace has no use of memory."
)
FULL = PeakScale(
    about=_ABOUT,
    seeds=5,
    steps=7 * _STEPS_A_DAY,
    histories=((6, 24), (12, 24), (24, 24), (36, 36), (24, 72)),
    budgets=(0.005, 0.01, 0.02, 0.05),
)
QUICK = PeakScale(
    about=f"{_ABOUT} A small form, which shows that everything works; its numbers are not to be quoted.",
    seeds=1,
    steps=432,
    histories=((6, 24), (24, 24)),
    budgets=(0.002, 0.01),
)

"""The list of the parts of the Delay Scheduling paper's evaluation (5)."""

from collections.abc import Sequence
from pathlib import Path

from lab.experiments.delay.groups import DelayPart
from lab.experiments.delay.macro import bins, yahoo
from lab.experiments.delay.micro import small, sticky, wait
from lab.experiments.delay.scales import DelayScale
from lab.experiments.delay.scans import CPU_HEAVY


def parts(scale: DelayScale, seeds: Sequence[int], traces: Path) -> list[DelayPart]:
    """Return the parts of the experiment at this scale, over these seeds; the long ones have the first seed only."""
    first = seeds[:1]
    return [
        small(scale, seeds),
        sticky(scale, first),
        wait(scale, seeds),
        bins(scale, first, "io", "IO-heavy jobs in Facebook's sizes (5.1.1, table 2)", 1.0),
        bins(scale, first, "cpu", "CPU-heavy jobs in Facebook's sizes (5.1.2)", CPU_HEAVY),
        *(yahoo(traces, name, 2, first, brief=scale.brief) for name in ("yahoo19", "yahoo59")),
    ]

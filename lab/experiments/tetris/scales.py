"""How large the experiment is: in full, and in a small form that shows that everything works.

The main comparisons are at full size and over all seeds; what varies one thing after the other is at a smaller scale
and over at most three seeds, as every point is a comparison of its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lab.experiments.tetris.runs import Setup


@dataclass(frozen=True, slots=True)
class Knobs:
    """The values that sweeps go through.

    Of the unpublished values' ends the first `ranges` of each workload, over one seed.
    """

    fairness: Sequence[float]
    barrier: Sequence[float]
    penalty: Sequence[float]
    srtf: Sequence[float]
    tail: Sequence[float]
    loss: Sequence[float]
    ranges: int


@dataclass(frozen=True, slots=True)
class TetrisScale:
    """How large everything is. Sweeps take at most `sweep_seeds`; `loads` are loads and the machines for them."""

    about: str
    seeds: int
    sweep_seeds: int
    suite: Setup
    facebook: Setup
    small_suite: Setup
    small_facebook: Setup
    loads: Sequence[tuple[float, str]]
    knobs: Knobs


FULL = TetrisScale(
    about=(
        "Suite and trace at full size over all seeds; what varies one thing at a time at a fifth of that, over at "
        "most three."
    ),
    seeds=5,
    sweep_seeds=3,
    suite=Setup("suite", "tetris:250"),
    facebook=Setup("swim:fb2010_0,jobs=1000", "facebook:100", makespan_at_start=True),
    small_suite=Setup("suite:jobs=22", "tetris:50"),
    small_facebook=Setup("swim:fb2010_0,jobs=250,load=344", "facebook:40", makespan_at_start=True),
    loads=((1, "facebook:40"), (0.5, "facebook:80"), (2, "facebook:20"), (4, "facebook:10")),
    knobs=Knobs(
        fairness=(0, 0.25, 0.5, 0.75, 0.99),
        barrier=(0.5, 0.75, 0.85, 0.9, 0.95, 1),
        penalty=(0, 0.06, 0.1, 0.15, 0.3, 0.5),
        srtf=(0, 0.5, 1, 1.5, 3),
        tail=(0.1, 0.25, 0.5, math.inf),
        loss=(0, 0.25, 0.5, 1),
        ranges=100,
    ),
)
QUICK = TetrisScale(
    about="A small form, which shows that everything works; its numbers are not to be quoted.",
    seeds=2,
    sweep_seeds=1,
    suite=Setup("suite:jobs=2", "tetris:16"),
    facebook=Setup("swim:fb2009_0,jobs=40,load=86", "facebook:10", makespan_at_start=True),
    small_suite=Setup("suite:jobs=2", "tetris:16"),
    small_facebook=Setup("swim:fb2009_0,jobs=40,load=86", "facebook:10", makespan_at_start=True),
    loads=((1, "facebook:10"), (2, "facebook:5")),
    knobs=Knobs(
        fairness=(0, 0.25, 0.99),
        barrier=(0.9, 1),
        penalty=(0, 0.1),
        srtf=(0, 1),
        tail=(0.25, math.inf),
        loss=(0, 0.5),
        ranges=2,
    ),
)

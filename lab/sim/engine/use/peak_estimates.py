"""What tasks will use, by what others like them have used; and what a young task is still allowed (Tetris, 4.1).

S stages, P tasks, R resources.
"""

import numpy as np

from extender.arrays import Counts, Floats

LEAST_ENDED = 3
"""So many tasks of a stage must have shown what they use before the others are expected to use as much."""

RAMP_SECONDS = 30.0
"""So old is a task that is allowed no more than it uses (Tetris, 4.1)."""


def estimated_demand(declared: Floats, earlier: Floats, measured: Floats, shown: Counts) -> Floats:
    """Return what one more task of each stage is expected to use at its peak [S, R] (Tetris, 4.1).

    The first that is known: the largest peak `measured` [S, R] of the stage's own tasks, where `LEAST_ENDED` of them
    have `shown` it [S, R]; what `earlier` runs of the job ended with [S, R], NaN where there are none; what is
    `declared` [S, R]. The largest rather than the mean, as an estimate that is too low slows tasks down.
    """
    unmeasured = np.where(np.isnan(earlier), declared, earlier)
    return np.where(shown >= LEAST_ENDED, measured, unmeasured)


def ramp_up_allowance(promised: Floats, used: Floats, age_seconds: Floats) -> Floats:
    """Return what young tasks are allowed beyond what they use [R, P] (Tetris, 4.1).

    At its start a task is allowed all that it was `promised` [R, P] and does not use yet, `used` [R, P]; that falls in
    proportion to its age [P] and is 0 from `RAMP_SECONDS` on, or where it uses more than it was promised.
    """
    young = np.clip(1.0 - age_seconds / RAMP_SECONDS, 0.0, 1.0)
    return np.asarray(np.maximum(promised - used, 0.0) * young)

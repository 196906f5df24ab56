"""FIFO queues: of one queue, a later job gets only what no earlier one could use.

This is no matter of scores: what the first of a line would be worth against other queues says nothing about the second,
and neither a barrier nor a long chain of stages lets a job pass those before it.
"""

import numpy as np

from extender.arrays import Counts, Mask, Rows


def at_the_head(job: Rows, behind: Counts, able: Mask) -> Mask:
    """Return which of the `able` classes [C] have no able one before them in their line: the rows with the same `job`.

    `behind` [C] is how many jobs are before each in its line.
    """
    foremost = np.full(job.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(foremost, job[able], behind[able])
    return np.asarray(able & (behind == foremost[job]))

"""What the tasks of each stage use in each phase of their progress, as arrays."""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.resources import DIMENSIONS
from lab.sim.workloads.stages import StageTable

_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Profiles:
    """The phases [K] of all stages [S], filled up with the last: `until` [S, K], `parts` [S, K, R]; `scale` [T]."""

    until: Floats
    parts: Floats
    scale: Floats

    def phase(self, stage: Rows, progress: Floats) -> Rows:
        """Return the phase in which tasks are at this progress [..., P]; a phase is over when its end is reached."""
        over = progress[..., np.newaxis] + _SAME >= self.until[stage]
        return np.asarray(np.minimum(over.sum(axis=-1), self.until.shape[1] - 1))


def profiles_of(table: StageTable) -> Profiles:
    """Return the profiles of a table; a stage that says nothing uses what it demands."""
    stages = len(table.tasks)
    most = max((len(use.until) for use in table.uses.values()), default=1)
    until, parts = np.ones((stages, most)), np.ones((stages, most, len(DIMENSIONS)))
    scale = np.ones(len(table.durations))
    for stage, use in table.uses.items():
        phases = len(use.until)
        until[stage, :phases], parts[stage, :phases] = use.until, use.parts
        parts[stage, phases:] = use.parts[-1]
        if use.scale is not None:
            first = int(table.first_task[stage])
            scale[first : first + len(use.scale)] = use.scale
    return Profiles(until, parts, scale)

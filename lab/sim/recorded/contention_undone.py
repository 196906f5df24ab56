"""What tasks would have taken at their peaks, by when and where they ran: the contention of a run taken out of it.

The simulator slows tasks down where disks and networks are over-allocated. The times of a recording are slowed down
already: without this step a replay would do it twice. CPU is not undone: what pods ask for of it is not what they use,
and opportunistic pods run on the rest.
"""

import numpy as np

from extender.arrays import Floats, Rows
from lab.sim.engine.contention import RATES, factors


def seconds_at_peak(start: Floats, end: Floats, node: Rows, demand: Floats, capacity: Floats) -> Floats:
    """Return the seconds [T] at full speed of tasks that ran from `start` to `end` on `node`, all [T].

    `demand` [T, R] is what they demanded, `capacity` [N, R] what nodes have. At each moment a task is as fast as its
    scarcest disk or network (Tetris, equation 5). Without over-allocation this is end - start.
    """
    seconds = np.zeros(len(start))
    load = np.zeros_like(capacity)
    running = np.zeros(len(start), dtype=np.bool_)
    wants = demand > 0
    moments = np.unique(np.concatenate((start, end)))
    first, last = np.argsort(start, kind="stable"), np.argsort(end, kind="stable")
    begun = np.searchsorted(start[first], moments, side="right")
    ended = np.searchsorted(end[last], moments, side="right")
    before = (0, 0)
    for place, length in enumerate(np.diff(moments).tolist()):
        # At each turn: `running` are the tasks between this moment and the next, `load` [N, R] what they demand.
        new, old = first[before[0] : begun[place]], last[before[1] : ended[place]]
        before = int(begun[place]), int(ended[place])
        running[new] = True
        running[old] = False
        np.add.at(load, node[new], demand[new])
        np.subtract.at(load, node[old], demand[old])
        rows = np.flatnonzero(running)
        part = factors(np.maximum(load, 0.0), capacity, shared=RATES)
        seconds[rows] += length * np.where(wants[rows], part[node[rows]], 1.0).min(axis=1)
    return seconds

"""Regular jobs on nodes by what they request: first come, first served, on the fullest node that has room."""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Rows
from lab.experiments.peaks.trace import SurfJobs


@dataclass(frozen=True, slots=True)
class PlacedJobs:
    """Where and when regular jobs run, in the order of their starts: `job`, `node`, `start` (a step), all [P]."""

    job: Rows
    node: Rows
    start: Counts


def place(jobs: SurfJobs, *, nodes: int, cores: float, steps: int, seed: int) -> PlacedJobs:
    """Return which jobs start in these steps. Who comes first waits for room; nobody passes it.

    The seed says which of equally full nodes is taken, and in which order jobs stand that came in one step.
    """
    rng = np.random.default_rng(seed)
    tie = rng.permutation(nodes)
    order = np.lexsort((rng.random(len(jobs.length)), jobs.submitted))
    free = np.full(nodes, cores)
    ends: dict[int, list[tuple[int, float]]] = {}
    placed: list[tuple[int, int, int]] = []
    first = 0
    for step in range(steps):
        for node, amount in ends.pop(step, []):
            free[node] += amount
        while first < len(order) and jobs.submitted[order[first]] <= step:
            job = int(order[first])
            fits = free >= jobs.cores[job]
            if not fits.any():
                break
            node = int(np.lexsort((tie, np.where(fits, free, np.inf)))[0])
            free[node] -= jobs.cores[job]
            ends.setdefault(step + int(jobs.length[job]), []).append((node, float(jobs.cores[job])))
            placed.append((job, node, step))
            first += 1
    rows = np.array(placed, dtype=np.intp).reshape(-1, 3)
    return PlacedJobs(rows[:, 0], rows[:, 1], rows[:, 2].astype(np.int64))

"""Jobs of Alibaba's trace of 2018 with what they used, on machines that their requests fill.

The trace has, for each stage, what an instance requested and used of CPU and memory in the mean. Over time it says
nothing: CPU is constant here, and memory grows as `_GROWTH` says. It has no disks and no networks, so nothing is read
or written. All this, and the sizes, were chosen before any run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from extender.arrays import Floats
from extender.cluster.resources import CPU_INDEX, DIMENSIONS, MEMORY_INDEX
from extender.errors import TraceError
from lab.sim.workloads.alibaba import JOBS_2018, StageLine, used_2018
from lab.sim.workloads.arrivals import PACED, START, arrange
from lab.sim.workloads.draws import durations
from lab.sim.workloads.parameters import Alibaba
from lab.sim.workloads.workload import Job, Machines, Stage, Use, Workload

CAPPED, RAISED = "capped", "raised"
"""What becomes of memory above its request: it is not used (as with a limit), or the request is raised to it."""

_CORES, _MILLIS = 96.0, 1000.0
_UNTIL = (0.25, 0.5, 1.0)
_GROWTH = (0.6, 1.0, 1.2)
"""Memory over time, as parts of what was measured; synthetic. In the mean over a task it is what was measured."""


@dataclass(frozen=True, slots=True)
class AlibabaJobs:
    """Jobs in one piece of the trace, as many as request all cores of `nodes` for `seconds`.

    `memory`: CAPPED or RAISED. `load` times what the nodes have is asked for while jobs arrive, in the trace's rhythm
    (None: all jobs are there at the beginning).
    """

    traces: Path = Path()
    nodes: int = 4
    seconds: float = 3600.0
    memory: str = CAPPED
    load: float | None = None

    @property
    def label(self) -> str:
        """The name that is shown."""
        arrivals = "at once" if self.load is None else f"at {self.load:g} times the nodes"
        return f"Alibaba's jobs for {self.seconds:g} s on {self.nodes} nodes, memory {self.memory}, {arrivals}"

    @property
    def machines(self) -> Machines:
        """Machines of 96 cores; the trace has memory as a part of a machine's."""
        row = np.full(len(DIMENSIONS), np.inf)
        row[CPU_INDEX], row[MEMORY_INDEX] = _CORES * _MILLIS, Alibaba().memory_2018
        return Machines("96 cores", np.tile(row, (self.nodes, 1)))

    def workload(self, seed: int) -> Workload:
        """Return the jobs. The seed draws where the piece begins, and how long each task takes. Raises TraceError."""
        random = np.random.default_rng(seed)
        chosen = self._piece(random, used_2018(self.traces / JOBS_2018))
        jobs = arrange(
            [self._job(random, rows) for rows in chosen],
            arrivals=START if self.load is None else PACED,
            load=(self.load or 1.0) * self.nodes * _CORES,
        )
        return Workload("alibaba2018", jobs)

    def _piece(self, random: np.random.Generator, jobs: Sequence[list[StageLine]]) -> Sequence[list[StageLine]]:
        """Return the jobs from a random one on, until they request as much as wanted."""
        wanted = self.nodes * _CORES * self.seconds
        requested = np.cumsum([sum(line.instances * line.seconds * line.cores for line in rows) for rows in jobs])
        before = np.concatenate(([0.0], requested))[:-1]
        may_begin = int(np.count_nonzero(requested[-1] - before >= wanted))
        if not may_begin:
            raise TraceError(
                f"{self.traces / JOBS_2018}: its jobs request {requested[-1]:.0f} core-seconds; {wanted:.0f} are needed"
            )
        begin = int(random.integers(may_begin))
        end = int(np.searchsorted(requested, before[begin] + wanted)) + 1
        return jobs[begin:end]

    def _job(self, random: np.random.Generator, rows: Sequence[StageLine]) -> Job:
        places = {line.stage: place for place, line in enumerate(rows)}
        stages = tuple(
            self._stage(random, line, tuple(sorted(places[parent] for parent in line.parents))) for line in rows
        )
        return Job(rows[0].job, min(line.submitted for line in rows), stages)

    def _stage(self, random: np.random.Generator, line: StageLine, parents: tuple[int, ...]) -> Stage:
        # 1. What a task uses in each phase, in cores and in parts of a machine.
        cores = np.full(len(_GROWTH), line.used_cores)
        memory = np.array(_GROWTH) * (line.used_memory or 0.0)
        # 2. What it requests, and what of its use is above that.
        request = line.memory
        if self.memory == RAISED:
            request = max(request, float(memory.max()))
        memory = np.minimum(memory, request)
        demand = np.zeros(len(DIMENSIONS))
        demand[CPU_INDEX], demand[MEMORY_INDEX] = line.cores * _MILLIS, request * Alibaba().memory_2018
        parts = np.ones((len(_GROWTH), len(DIMENSIONS)))
        parts[:, CPU_INDEX], parts[:, MEMORY_INDEX] = _part(cores, line.cores), _part(memory, request)
        return Stage(
            name=f"{line.job}-{line.stage}",
            demand=demand,
            reading=0.0,
            duration=line.seconds,
            durations=durations(random, line.instances, line.seconds, Alibaba().duration_spread),
            parents=parents,
            use=Use(np.array(_UNTIL), parts),
        )


def _part(used: Floats, request: float) -> Floats:
    """Return use as parts of a request; 1 where nothing is requested."""
    return used / request if request > 0 else np.ones_like(used)

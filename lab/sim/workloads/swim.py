"""Facebook-like jobs from the SWIM traces: real arrivals and bytes, tasks as diverse as Tetris found them.

SWIM publishes when each Hadoop job of a day came and how many bytes its maps read, its shuffle moved and its reduces
wrote, of a cluster of 600 machines (2009) and of 3,000 (2010). There is a map per HDFS block of the input, and a reduce
per `task_bytes` of the shuffle; there are more of either where each would write more than `task_bytes` (some jobs write
gigabytes out of kilobytes). A job without shuffle has only maps, which write its output.

What tasks need is drawn per stage: as skewed as Tetris 2.2.2 found, going together as its table 2 has it.
A task takes as long as its bytes need at the drawn rates, so rate x duration gives the bytes back.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from extender.arrays import Floats
from extender.cluster.resources import DIMENSIONS, DISK_WRITE_INDEX
from lab.sim.workloads.arrivals import PACED, arrange, window
from lab.sim.workloads.columns import TAB, read, text, whole
from lab.sim.workloads.draws import correlated, durations, skewed
from lab.sim.workloads.parameters import Facebook, Parameters
from lab.sim.workloads.workload import BLOCKS, SHUFFLE, Job, Stage, Workload

BLOCK_BYTES = 128 * 2**20

VARIATIONS = (1.42, 1.26, 2.24, 2.05)
"""Coefficients of variation of tasks' CPU, memory, disk and network (Tetris, 2.2.2)."""

CORRELATION = np.array(
    [
        [1.00, 0.41, 0.12, 0.23],
        [0.41, 1.00, 0.28, -0.10],
        [0.12, 0.28, 1.00, -0.07],
        [0.23, -0.10, -0.07, 1.00],
    ]
)
"""How CPU, memory, disk and network go together (Tetris, table 2, Facebook)."""

LEAST, MOST = 1 / 7.5, 20.0
"""The smallest is 5 to 10 times below the median, the largest 20 times above it (Tetris, 2.2.2)."""

_DISKS = 200e6
"""What the disks of a machine of Tetris 5.3 do at most. A map's block may come over the network, so it reads no faster
than a link either, and a final output whose copies go there is written no faster."""

_COLUMNS = {
    "job": text,
    "submit_s": whole,
    "map_input_bytes": whole,
    "shuffle_bytes": whole,
    "reduce_output_bytes": whole,
}


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job of the trace: its arrival in seconds, and its bytes."""

    job: str
    submitted: int
    read: int
    shuffled: int
    written: int

    def maps(self, most_bytes: float) -> int:
        """How many maps it has: one per block, at least one, and none writes more than `most_bytes`."""
        writes = self.shuffled or self.written
        return max(1, math.ceil(self.read / BLOCK_BYTES), math.ceil(writes / most_bytes))

    def reduces(self, most_bytes: float) -> int:
        """How many reduces it has: none reads or writes more than `most_bytes`. Without a shuffle there are none."""
        return math.ceil(max(self.shuffled, self.written) / most_bytes) if self.shuffled else 0

    def tasks(self, most_bytes: float) -> int:
        """How many tasks it has."""
        return self.maps(most_bytes) + self.reduces(most_bytes)


def swim(
    path: Path,
    seed: int,
    *,
    jobs: int | None = None,
    arrivals: str = PACED,
    load: float | None = None,
    parameters: Parameters | None = None,
) -> Workload:
    """Return jobs of a SWIM trace: `jobs` in one piece that begins anywhere by the seed (None: all of them).

    `arrivals` and `load` as in arrivals.arrange. Jobs of more tasks than the table's `largest` are left out. Raises
    TraceError, and DovetailError for wrong arrivals.
    """
    chosen = (parameters or Parameters()).facebook
    rng = np.random.default_rng(seed)
    lines = [line for line in _lines(path) if line.tasks(chosen.task_bytes) <= chosen.largest]
    lines_taken = lines[window(rng, len(lines), jobs)]
    return Workload(
        name=f"swim:{path.stem}",
        jobs=arrange([_job(rng, chosen, line) for line in lines_taken], arrivals=arrivals, load=load or chosen.load),
        about=f"Facebook-like: {len(lines_taken)} jobs of SWIM's {path.stem}, seed {seed}, arrivals: {arrivals}",
        output_copies=chosen.output_copies,
    )


def _lines(path: Path) -> list[JobLine]:
    return sorted((JobLine(*values) for values in read(path, _COLUMNS, delimiter=TAB)), key=lambda line: line.submitted)


def _job(rng: np.random.Generator, chosen: Facebook, line: JobLine) -> Job:
    maps, reduces = line.maps(chosen.task_bytes), line.reduces(chosen.task_bytes)
    map_writes = line.shuffled if reduces else line.written
    sent = chosen.output_copies > 1
    map_work = _StageWork("map", maps, line.read / maps, map_writes / maps, BLOCKS, sent=sent and not reduces)
    stages = [_stage(rng, chosen, map_work)]
    if reduces:
        read, write = line.shuffled / reduces, line.written / reduces
        reduce_work = _StageWork("reduce", reduces, read, write, SHUFFLE, parents=(0,), sent=sent)
        stages.append(_stage(rng, chosen, reduce_work))
    return Job(name=line.job, arrives_at=float(line.submitted), stages=tuple(stages))


@dataclass(frozen=True, slots=True)
class _StageWork:
    """The work of a stage: its number of tasks, and the bytes that each reads and writes; a final output is `sent`."""

    name: str
    tasks: int
    read: float
    write: float
    source: str
    parents: tuple[int, ...] = ()
    sent: bool = False


def _stage(rng: np.random.Generator, chosen: Facebook, work: _StageWork) -> Stage:
    """Draw what its tasks need, and let them take as long as their bytes need at the drawn rates."""
    medians = (chosen.cpu, chosen.memory, chosen.disk, chosen.network)
    drawn = skewed(correlated(rng, CORRELATION), medians, VARIATIONS, least=LEAST, most=MOST)
    cpu, memory, disk, network = np.minimum(drawn, (np.inf, np.inf, _DISKS, chosen.link)).tolist()
    sending = work.write / network if work.sent else 0.0
    if work.source == SHUFFLE:
        seconds = max(chosen.shortest, sending, work.read / network, work.write / disk)
    else:
        seconds = max(chosen.shortest, sending, (work.read + work.write) / disk, work.read / chosen.link)
    return Stage(
        name=work.name,
        demand=_demand(cpu, memory, work.write / seconds),
        reading=float(round(work.read / seconds)),
        duration=seconds,
        durations=durations(rng, work.tasks, seconds, chosen.duration_spread),
        parents=work.parents,
        source=work.source,
    )


def _demand(cpu: float, memory: float, writing: float) -> Floats:
    row = np.zeros(len(DIMENSIONS))
    row[:2] = round(cpu), round(memory)
    row[DISK_WRITE_INDEX] = round(writing)
    return row

"""Batch jobs of Alibaba's clusters: the trace of 2017 (independent stages) and of 2018 (DAGs).

The traces have what tasks request of CPU and memory, how many instances a stage has, how long one takes in the mean,
and when it came. They have no bytes: what a stage reads and writes per second is drawn from the table of parameters. A
stage without parents reads blocks, one with parents a shuffle of what they wrote.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from extender.cluster.resources import DIMENSIONS, DISK_WRITE_INDEX
from extender.errors import TraceError
from lab.sim.workloads.arrivals import PACED, arrange, window
from lab.sim.workloads.columns import count, lines, number, positive, text, whole, wholes
from lab.sim.workloads.draws import durations, skewed
from lab.sim.workloads.parameters import Alibaba, Parameters
from lab.sim.workloads.swim import LEAST, MOST, VARIATIONS
from lab.sim.workloads.workload import BLOCKS, SHUFFLE, Job, Stage, Workload

JOBS_2017 = Path("alibaba2017_batch/jobs.csv")
JOBS_2018 = Path("alibaba2018_dag/jobs3690_req_usage.csv")

_MILLIS, _PERCENT = 1000.0, 100.0
_COLUMNS_2017: Mapping[str, Callable[[str], object]] = {
    "job_id": text,
    "task_id": text,
    "submit_s": number,
    "inst_duration_s": positive,
    "cpu_cores": number,
    "mem_norm": number,
    "instances": count,
}
_COLUMNS_2018: Mapping[str, Callable[[str], object]] = {
    "job": text,
    "stage": whole,
    "parents": wholes,
    "instances": count,
    "start_s": number,
    "inst_duration_s": positive,
    "cpu_req_pct": number,
    "mem_req": number,
}
_COLUMNS_USED: Mapping[str, Callable[[str], object]] = {
    **_COLUMNS_2018,
    "cpu_used_pct_per_inst": number,
    "mem_used_per_inst": number,
}


@dataclass(frozen=True, slots=True)
class StageLine:
    """A stage in a trace: `where` is its file and line; it requests cores and a part of a machine's memory.

    `used_cores` and `used_memory` are what an instance used of them, in the mean (None: not read).
    """

    where: str
    job: str
    stage: str
    submitted: float
    instances: int
    seconds: float
    cores: float
    memory: float
    parents: tuple[str, ...] = ()
    used_cores: float | None = None
    used_memory: float | None = None


@dataclass(frozen=True, slots=True)
class _Replay:
    """The random draws and parameters that jobs are made with."""

    rng: np.random.Generator
    chosen: Alibaba
    machine_memory: float


def alibaba2017(
    path: Path,
    seed: int,
    *,
    jobs: int | None = None,
    arrivals: str = PACED,
    load: float | None = None,
    parameters: Parameters | None = None,
) -> Workload:
    """Return jobs of the trace of 2017: `jobs` in one piece that begins anywhere by the seed (None: all of them).

    `arrivals` and `load` as in arrivals.arrange. Raises TraceError, and DovetailError for wrong arrivals.
    """
    chosen = (parameters or Parameters()).alibaba
    replay = _Replay(np.random.default_rng(seed), chosen, chosen.memory_2017)
    jobs_taken = _jobs_of(replay, _lines_2017(path), jobs)
    return Workload(
        name="alibaba2017",
        jobs=arrange(jobs_taken, arrivals=arrivals, load=load or chosen.load_2017),
        about=f"{len(jobs_taken)} batch jobs of Alibaba 2017, seed {seed}, arrivals: {arrivals}",
    )


def alibaba2018(
    path: Path,
    seed: int,
    *,
    jobs: int | None = None,
    arrivals: str = PACED,
    load: float | None = None,
    parameters: Parameters | None = None,
) -> Workload:
    """Return DAGs of the trace of 2018, as `alibaba2017` does.

    Raises TraceError also for a stage that stands twice, waits for one that its job does not have, or for itself.
    """
    chosen = (parameters or Parameters()).alibaba
    replay = _Replay(np.random.default_rng(seed), chosen, chosen.memory_2018)
    jobs_taken = _jobs_of(replay, _lines_2018(path), jobs)
    return Workload(
        name="alibaba2018",
        jobs=arrange(jobs_taken, arrivals=arrivals, load=load or chosen.load_2018),
        about=f"{len(jobs_taken)} DAGs of Alibaba 2018, seed {seed}, arrivals: {arrivals}",
    )


def used_2018(path: Path) -> list[list[StageLine]]:
    """Return the jobs of the trace of 2018 by arrival, each as its stages with their use, parents first.

    Raises TraceError, as `alibaba2018` does.
    """
    return _by_arrival(
        StageLine(
            where,
            job,
            str(stage),
            submitted,
            instances,
            seconds,
            cpu / _PERCENT,
            memory / _PERCENT,
            tuple(str(parent) for parent in parents),
            used_cpu / _PERCENT,
            used_memory / _PERCENT,
        )
        for where, (job, stage, parents, instances, submitted, seconds, cpu, memory, used_cpu, used_memory) in lines(
            path, _COLUMNS_USED
        )
    )


def _lines_2017(path: Path) -> Iterator[StageLine]:
    for where, (job, stage, submitted, seconds, cores, memory, instances) in lines(path, _COLUMNS_2017):
        yield StageLine(where, job, stage, submitted, instances, seconds, cores, memory)


def _lines_2018(path: Path) -> Iterator[StageLine]:
    for where, (job, stage, parents, instances, submitted, seconds, cpu, memory) in lines(path, _COLUMNS_2018):
        before = tuple(str(parent) for parent in parents)
        yield StageLine(
            where, job, str(stage), submitted, instances, seconds, cpu / _PERCENT, memory / _PERCENT, before
        )


def _jobs_of(replay: _Replay, stage_lines: Iterator[StageLine], jobs: int | None) -> list[Job]:
    """Return the jobs of a window, each with its stages in an order in which parents come first."""
    ordered = _by_arrival(stage_lines)
    return [_job(replay, rows) for rows in ordered[window(replay.rng, len(ordered), jobs)]]


def _by_arrival(stage_lines: Iterator[StageLine]) -> list[list[StageLine]]:
    """Return the jobs in the order of their arrival, each as its stages in an order in which parents come first."""
    stages: dict[str, list[StageLine]] = {}
    for line in stage_lines:
        stages.setdefault(line.job, []).append(line)
    ordered = [_parents_first(rows) for rows in stages.values()]
    return sorted(ordered, key=lambda rows: min(line.submitted for line in rows))


def _parents_first(rows: Sequence[StageLine]) -> list[StageLine]:
    """Return a job's stages so that parents come before children. Raises TraceError where that cannot be."""
    # 1. Every stage stands once, and its parents exist.
    by_stage: dict[str, StageLine] = {}
    for line in rows:
        if line.stage in by_stage:
            raise TraceError(f"{line.where}, column 'stage': job {line.job} has stage {line.stage} already")
        by_stage[line.stage] = line
    for line in rows:
        for parent in line.parents:
            if parent not in by_stage:
                raise TraceError(
                    f"{line.where}, column 'parents': stage {line.stage} of job {line.job} waits for stage {parent}, "
                    f"which that job does not have"
                )
    # 2. At each turn, the parents of the stages in `ordered` are in `ordered` too.
    ordered: list[StageLine] = []
    unordered = dict(by_stage)
    while unordered:
        ready = [line for line in unordered.values() if not any(parent in unordered for parent in line.parents)]
        if not ready:
            first = next(iter(unordered.values()))
            raise TraceError(
                f"{first.where}, column 'parents': stage {first.stage} of job {first.job} is in or behind a cycle of "
                f"stages that wait for each other: {', '.join(unordered)}"
            )
        ordered += ready
        unordered = {name: line for name, line in unordered.items() if line not in ready}
    return ordered


def _job(replay: _Replay, rows: Sequence[StageLine]) -> Job:
    places = {line.stage: place for place, line in enumerate(rows)}
    return Job(
        name=rows[0].job,
        arrives_at=min(line.submitted for line in rows),
        stages=tuple(_stage(replay, line, tuple(sorted(places[parent] for parent in line.parents))) for line in rows),
    )


def _stage(replay: _Replay, line: StageLine, parents: tuple[int, ...]) -> Stage:
    rng, chosen = replay.rng, replay.chosen
    disk = VARIATIONS[2]
    reading, writing = skewed(
        rng.standard_normal(2), (chosen.reading, chosen.writing), (disk, disk), least=LEAST, most=MOST
    ).tolist()
    demand = np.zeros(len(DIMENSIONS))
    demand[:2] = round(line.cores * _MILLIS), round(line.memory * replay.machine_memory)
    demand[DISK_WRITE_INDEX] = round(writing)
    return Stage(
        name=line.stage,
        demand=demand,
        reading=float(round(reading)),
        duration=line.seconds,
        durations=durations(rng, line.instances, line.seconds, chosen.duration_spread),
        parents=parents,
        source=SHUFFLE if parents else BLOCKS,
    )

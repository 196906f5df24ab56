"""Makes a workload of a workload file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats, Mask
from extender.cluster.eligibility import Constraints, Toleration
from extender.cluster.resources import (
    CPU,
    DISK_READ,
    DISK_READ_INDEX,
    MEMORY,
    NETWORK_IN,
    NETWORK_IN_INDEX,
    NETWORK_OUT,
)
from extender.errors import TraceError
from extender.graph.dag import cycle_of
from extender.words import many
from lab.sim.files.format import COUNT, LEAST_SECONDS, MOST_SECONDS, InputLine, JobLine, StageLine, WavesLine
from lab.sim.files.lines import csv_jobs, json_lines
from lab.sim.files.machines import amounts
from lab.sim.files.mistakes import shown
from lab.sim.files.wfformat import wfformat_job
from lab.sim.workloads.waves import Curve, Waves, curve_of, least_seconds, seconds_alone
from lab.sim.workloads.workload import BLOCKS, LOCAL, SHUFFLE, Job, Machines, Stage, Workload

MOST_TASKS = 10_000_000
_MOST_SHOWN = 10
"""How many stages of a cycle an error names."""

_FOLLOWS = (DISK_READ, NETWORK_IN, NETWORK_OUT)


def workload_of(path: Path, machines: Machines) -> Workload:
    """Return the jobs of a file (`.csv`: one stage a job; `.json`: WfFormat; else JSON lines), for these machines.

    Raises TraceError, naming file, line, field and what is accepted; also for a task that fits no machine.
    """
    maker = _Maker(machines)
    jobs: list[Job] = []
    lines: dict[str, str] = {}
    tasks = 0
    for where, line in _lines(path):
        if line.job in lines:
            raise TraceError(
                f"{where}: field job: {line.job!r} is the name of a job of {lines[line.job]} already; "
                "accepted: each name once"
            )
        lines[line.job] = where
        jobs.append(maker.job(where, line))
        tasks += sum(stage.tasks for stage in jobs[-1].stages)
        if tasks > MOST_TASKS:
            raise TraceError(f"{where}: over {MOST_TASKS} tasks; accepted: at most as many")
    if not jobs:
        raise TraceError(f"{path} has no jobs; needed: a line for each")
    jobs.sort(key=lambda job: (job.arrives_at, job.queue, job.name))  # whatever is drawn goes by this order
    return Workload(
        name=path.name, jobs=jobs, about=f"{many(len(jobs), 'job')} of {many(tasks, 'task')} from {path.name}"
    )


def _lines(path: Path) -> Iterator[tuple[str, JobLine]]:
    match path.suffix:
        case ".csv":
            return csv_jobs(path)
        case ".json":
            return wfformat_job(path)
    return json_lines(path, JobLine)


class _Maker:
    """Makes jobs for these machines; what is alike in many stages is kept once."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._columns = {name: column for column, name in enumerate(machines.axis)}
        self._rows = {node.name: row for row, node in enumerate(machines.nodes)}
        self._at_once: dict[tuple[bytes, Constraints], float] = {}
        self._same: dict[Constraints, Constraints] = {}

    def job(self, where: str, line: JobLine) -> Job:
        order = _parents_first(where, line)
        _check_one_to_one(where, line)
        places = {line.stages[number].name: place for place, number in enumerate(order)}
        return Job(
            name=line.job,
            arrives_at=line.arrives,
            stages=tuple(self._stage(where, line, number, places) for number in order),
            queue=line.queue,
            recurring=line.recurring or "",
        )

    def _stage(self, where: str, line: JobLine, number: int, places: Mapping[str, int]) -> Stage:
        stage, field = line.stages[number], line.field(number)
        demand = self._demand(where, line, number)
        reading, source = 0.0, LOCAL
        if stage.input is not None:
            rate = f"{field}.input.rate"
            reading = amounts(where, lambda _: rate, {DISK_READ: stage.input.rate})[DISK_READ]
            source = stage.input.source
        if source == SHUFFLE and not stage.parents:
            raise TraceError(
                f"{where}: field {field}.input.from: shuffle needs parents to read from; accepted: {LOCAL}, {BLOCKS}"
            )
        constraints = _constraints(stage)
        constraints = self._same.setdefault(constraints, constraints)
        need = demand.copy()
        need[NETWORK_IN_INDEX if source == SHUFFLE else DISK_READ_INDEX] += reading
        at_once = self._held_at_once(where, line, number, need, constraints)
        if line.gang and stage.tasks > at_once:
            raise TraceError(
                f"{where}: field {field}.tasks: {stage.tasks} tasks of a gang start together, and all machines that "
                f"they may go to hold {at_once:.0f} at once; accepted: as many at most"
            )
        durations, expected, waves = self._seconds(where, field, stage)
        return Stage(
            name=stage.name,
            demand=demand,
            reading=reading,
            duration=expected if stage.expected is None else stage.expected,
            durations=durations,
            parents=tuple(sorted({places[parent] for parent in (*stage.parents, *stage.one_to_one)})),
            one_to_one=tuple(sorted({places[parent] for parent in stage.one_to_one})),
            source=source,
            copies=self._copies(where, f"{field}.input.nodes", stage),
            constraints=constraints,
            priority=line.priority,
            gang=line.gang,
            waves=waves,
        )

    def _seconds(self, where: str, field: str, stage: StageLine) -> tuple[Floats, float, Waves | None]:
        """Return what each task takes (at least, where that goes by waves), the mean, and the waves."""
        if isinstance(stage.seconds, WavesLine):
            waves, machines = _waves(where, f"{field}.seconds", stage.seconds), len(self._machines.capacity)
            durations = np.full(stage.tasks, least_seconds(waves, machines))
            return durations, float(seconds_alone(waves, stage.tasks, machines).mean()), waves
        durations = _durations(where, field, stage.seconds, stage.tasks)
        return durations, float(durations.mean()), None

    def _demand(self, where: str, line: JobLine, number: int) -> Floats:
        def field_of(name: str) -> str:
            return line.field(number, f"demand.{name}")

        row = np.zeros(len(self._columns))
        for name, amount in amounts(where, field_of, line.stages[number].demand).items():
            if name in _FOLLOWS:
                reason = "follows from what a task reads; accepted: `input` with a rate, in JSON lines"
                raise TraceError(f"{where}: field {field_of(name)}: {reason}")
            if name not in self._columns:
                offered = ", ".join(self._columns)
                raise TraceError(f"{where}: field {field_of(name)}: no machine offers it; machines offer: {offered}")
            row[self._columns[name]] = amount
        return row

    def _held_at_once(self, where: str, line: JobLine, number: int, need: Floats, constraints: Constraints) -> float:
        """Return how many tasks empty machines hold at once; raise TraceError where one fits none that it may go to."""
        key = need.tobytes(), constraints
        if key not in self._at_once:
            allowed, asked = self._machines.allowed(constraints), need > 0
            parts = self._machines.capacity[allowed][:, asked] / need[asked]
            self._at_once[key] = float(np.floor(parts.min(axis=1, initial=np.inf)).sum())
            if not allowed.any():
                field = line.field(number)
                raise TraceError(f"{where}: field {field}: {_nowhere(self._machines, constraints)}")
        if not self._at_once[key]:
            reason = self._too_large(need, allowed)
            raise TraceError(f"{where}: field {line.field(number, 'demand')}: {reason}")
        return self._at_once[key]

    def _too_large(self, need: Floats, allowed: Mask) -> str:
        """Return why a task fits none of the machines that it may go to, with what is accepted."""
        capacity, asked = self._machines.capacity, need > 0
        reason = f"a task fits no machine that it may go to: it needs {self._amounts(need, asked)}"
        if (capacity[~allowed][:, asked] >= need[asked]).all(axis=1).any():
            return (
                f"{reason}; its nodeSelector, or a taint that it does not tolerate, keeps it from those that have this"
            )
        most = capacity[allowed].max(axis=0)
        if (most < need).any():
            return f"{reason}; accepted: at most {self._amounts(most, most < need)}"
        return f"{reason}; accepted: what one machine has, as each of these is on another"

    def _amounts(self, row: Floats, chosen: Mask) -> str:
        """Return the chosen amounts of a row [R] in words."""
        return ", ".join(_asked(name, row[column]) for name, column in self._columns.items() if chosen[column])

    def _copies(self, where: str, field: str, stage: StageLine) -> NDArray[np.intp] | None:
        given: InputLine | None = stage.input
        if given is None or not given.nodes:
            return None
        if given.source != BLOCKS or len(given.nodes) != stage.tasks:
            raise TraceError(
                f"{where}: field {field}: accepted: with from: {BLOCKS}, one list for each of {stage.tasks} tasks"
            )
        copies = np.full((stage.tasks, max(map(len, given.nodes))), -1, dtype=np.intp)
        for task, names in enumerate(given.nodes):
            for place, name in enumerate(dict.fromkeys(names)):
                if name not in self._rows:
                    raise TraceError(
                        f"{where}: field {field}[{task}]: there is no machine {name!r} in the machines file; "
                        f"accepted: {_some(list(self._rows))}"
                    )
                copies[task, place] = self._rows[name]
        return copies


def _check_one_to_one(where: str, line: JobLine) -> None:
    """Raise TraceError where tasks cannot wait for single tasks of these parents."""
    tasks = {stage.name: stage.tasks for stage in line.stages}
    for number, stage in enumerate(line.stages):
        field = f"{where}: field stages[{number}].oneToOne"
        for place, parent in enumerate(stage.one_to_one):
            if parent in stage.parents:
                raise TraceError(f"{field}[{place}]: {parent!r} stands in parents too; accepted: in one of both")
            if tasks[parent] != stage.tasks:
                both = f"{parent!r} has {tasks[parent]} tasks, this stage {stage.tasks}"
                raise TraceError(f"{field}[{place}]: {both}; accepted: as many")
        if stage.one_to_one and line.gang:
            raise TraceError(f"{field}: the job is a gang, whose tasks start together; accepted: parents")
        if stage.one_to_one and stage.input is not None and stage.input.source != LOCAL:
            raise TraceError(f"{field}: it reads from {stage.input.source}; accepted: {LOCAL}, or no input")


def _nowhere(machines: Machines, constraints: Constraints) -> str:
    """Return why no machine allows these, with what machines have."""
    selected = [node for node in machines.nodes if constraints.selects(node.labels)]
    if not selected:
        wanted = shown(", ".join(f"{key}={value}" for key, value in constraints.selector))
        labels = sorted({f"{key}={value}" for node in machines.nodes for key, value in node.labels.items()})
        return f"no machine has the labels {wanted}; accepted: {_some(labels) or 'no label, as no machine has any'}"
    taints = sorted({f"{taint.key}={taint.value}:{taint.effect}" for node in selected for taint in node.taints})
    return f"each machine with its labels has a taint that it does not tolerate; taints there are: {_some(taints)}"


def _some(names: Sequence[str]) -> str:
    """Return some of the names in words."""
    return ", ".join([*(shown(name) for name in names[:_MOST_SHOWN]), *(["..."] if len(names) > _MOST_SHOWN else [])])


def _constraints(stage: StageLine) -> Constraints:
    return Constraints(
        selector=tuple(sorted(stage.node_selector.items())),
        tolerations=tuple(Toleration(line.key, line.operator, line.value, line.effect) for line in stage.tolerations),
    )


def _waves(where: str, field: str, line: WavesLine) -> Waves:
    rest = _curve(where, f"{field}.rest", line.rest)
    first = rest if line.first is None else _curve(where, f"{field}.first", line.first)
    fresh = first if line.fresh is None else _curve(where, f"{field}.fresh", line.fresh)
    return fresh, first, rest


def _curve(where: str, field: str, by_count: Mapping[str, float]) -> Curve:
    for count, seconds in by_count.items():
        if not re.fullmatch(COUNT, count):
            raise TraceError(f"{where}: field {field}: {count!r}; accepted: counts of machines, 1 to 999999")
        if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
            accepted = f"{LEAST_SECONDS:g} to {MOST_SECONDS:g} seconds"
            raise TraceError(f"{where}: field {field}.{count}: {seconds:g}; accepted: {accepted}")
    return curve_of({int(count): seconds for count, seconds in by_count.items()})


def _durations(where: str, field: str, seconds: float | list[float], tasks: int) -> Floats:
    if not isinstance(seconds, list):
        return np.full(tasks, seconds)
    if len(seconds) != tasks:
        count = len(seconds)
        raise TraceError(
            f"{where}: field {field}.seconds: {count} numbers; accepted: one, or one for each of {tasks} tasks"
        )
    return np.array(seconds)


def _parents_first(where: str, line: JobLine) -> list[int]:
    """Return the places of the stages, parents before children. Raises TraceError where that cannot be."""
    # 1. Names stand once, and parents exist.
    numbers: dict[str, int] = {}
    for number, stage in enumerate(line.stages):
        if stage.name in numbers:
            raise TraceError(
                f"{where}: field stages[{number}].name: {stage.name!r} stands twice in job {line.job!r}; "
                "accepted: each name once"
            )
        numbers[stage.name] = number
    above: list[list[int]] = [[] for _ in line.stages]
    children: list[list[int]] = [[] for _ in line.stages]
    for number, stage in enumerate(line.stages):
        for field, parents in (("parents", stage.parents), ("oneToOne", stage.one_to_one)):
            named: set[str] = set()
            for place, parent in enumerate(parents):
                if parent in named:
                    raise TraceError(
                        f"{where}: field stages[{number}].{field}[{place}]: {parent!r} stands twice; accepted: once"
                    )
                named.add(parent)
                if parent not in numbers:
                    raise TraceError(
                        f"{where}: field stages[{number}].{field}[{place}]: job {line.job!r} has no stage {parent!r}; "
                        f"accepted: {_some(list(numbers))}"
                    )
                above[number].append(numbers[parent])
                children[numbers[parent]].append(number)
    # 2. At each turn, all parents of the stages in `order` are in `order` before them.
    missing = [len(parents) for parents in above]
    order = [number for number, count in enumerate(missing) if not count]
    for number in order:
        for child in children[number]:
            missing[child] -= 1
            if not missing[child]:
                order.append(child)
    if len(order) < len(line.stages):
        cycle = cycle_of(above, missing)
        names = [shown(line.stages[number].name) for number in cycle]
        words = " -> ".join(names if len(names) <= _MOST_SHOWN else [*names[:_MOST_SHOWN], "..."])
        raise TraceError(f"{where}: field {line.field(cycle[0])}: a cycle of parents: {words}; accepted: no cycle")
    return order


def _asked(name: str, amount: float) -> str:
    """Return an amount as a file says it: CPU in cores, memory in Gi."""
    if name == MEMORY:
        return f"{name} {amount / 2**30:g}Gi"
    return f"{name} {amount / 1000 if name == CPU else amount:g}"

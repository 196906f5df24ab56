"""Reads WfFormat, in which WfCommons publishes the DAGs of scientific workflows: one JSON document, one job.

Versions 1.5 and later say what there is to do in `workflow.specification` and what it took in `workflow.execution`;
those before say both in `workflow.tasks`, up to 1.3 under other names, the first ones in `workflow.jobs`. Tasks that
are alike in all but their durations become one stage.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from extender.cluster.recording.lines import refuse_gzip
from extender.errors import TraceError
from lab.sim.files.format import MOST_SECONDS, JobLine, StageLine
from lab.sim.files.lines import LONGEST_LINE
from lab.sim.files.mistakes import decoded, mistake, not_text, shown

_Runtime = Annotated[float, msgspec.Meta(ge=0, le=MOST_SECONDS)]
_Bytes = Annotated[float, msgspec.Meta(ge=0, le=9e15)]
_Thousands = Annotated[float, msgspec.Meta(ge=0, le=9e12)]
"""KB, and cores, which are counted in thousandths: amounts stay below 2**53."""

_MEMORY_UNIT = 1000.0
"""The bytes in the unit of `memory`, KB; `memoryInBytes` is in bytes."""

_SHORTEST = 0.001
"""What a task takes at least: some are said to take 0 seconds."""


class _Task(msgspec.Struct, rename="camel"):
    """A task, and in old versions what it took; `id` is missing in the oldest, whose names are unique."""

    name: str = ""
    id: str = ""
    parents: list[str] = []
    children: list[str] = []
    runtime_in_seconds: _Runtime | None = None
    runtime: _Runtime | None = None
    core_count: _Thousands | None = None
    cores: _Thousands | None = None
    memory_in_bytes: _Bytes | None = None
    memory: _Thousands | None = None

    def key(self) -> str:
        """Return what it alone is called."""
        return self.id or self.name

    def words(self) -> str:
        """Return what stands behind a field of it in an error."""
        return f" (task {shown(self.key())!r})"


class _Tasks(msgspec.Struct):
    tasks: list[_Task]


class _Workflow(msgspec.Struct):
    specification: _Tasks | None = None
    execution: _Tasks | None = None
    tasks: list[_Task] | None = None
    jobs: list[_Task] | None = None


class _Document(msgspec.Struct):
    workflow: _Workflow
    name: Annotated[str, msgspec.Meta(min_length=1)] = "workflow"


class _WorkflowLine(JobLine):
    """The job of a document; `fields`: those of each stage's first task and of what that demands."""

    fields: tuple[tuple[str, str], ...] = ()

    def field(self, number: int, part: str = "") -> str:
        task, demand = self.fields[number]
        return demand if part.startswith("demand") else task


def wfformat_job(path: Path) -> Iterator[tuple[str, JobLine]]:
    """Yield where the job of a document is and what it is. Raises TraceError, naming file and field."""
    where = str(path)
    try:
        with path.open("rb") as file:
            text = file.read(LONGEST_LINE + 1)
    except OSError as error:
        raise TraceError(f"{where} cannot be read: {error.strerror}") from None
    if len(text) > LONGEST_LINE:
        raise TraceError(f"{where}: over {LONGEST_LINE} bytes; accepted: at most as many")
    refuse_gzip(where, text)
    text = text.removeprefix(codecs.BOM_UTF8)
    try:
        document = msgspec.json.decode(text, type=_Document)
    except msgspec.ValidationError as error:
        problem = mistake(error, _Document, decoded(text), whole="one JSON object")
        raise TraceError(f"{where}: {_with_task(problem, text)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(f"{where}: {_unreadable(text, error)}; accepted: one JSON document in UTF-8") from None
    yield where, _job(where, document)


def _with_task(problem: str, text: bytes) -> str:
    """Return a mistake with the task that its field is of, if it is of one."""
    place = re.match(r"field workflow\.([a-z.]+)\[(\d+)\]", problem)
    if not place:
        return problem
    try:
        given: Any = msgspec.json.decode(text)["workflow"]
        for part in (*place[1].split("."), int(place[2])):
            given = given[part]
        task = msgspec.convert({key: given[key] for key in ("id", "name") if key in given}, _Task)
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError):  # it is wrong in more than one way
        return problem
    return problem.replace(": ", f"{task.words()}: ", 1) if task.key() else problem


def _unreadable(text: bytes, error: Exception) -> str:
    """Return in words why a text is no JSON."""
    if "truncated" in str(error):
        return f"not one JSON document (is it cut off?): {error}"
    return not_text(text) or f"not one JSON document: {error}"


def _job(where: str, document: _Document) -> JobLine:
    """Return the job of a document."""
    field, tasks, taken = _found(where, document.workflow)
    edges = _edges(where, field, tasks)
    followed: list[list[int]] = [[] for _ in tasks]
    for child, parents in enumerate(edges):
        for parent in parents:
            followed[parent].append(child)
    # 1. Tasks of one name with the same parents, children and demand are a stage: an edge between two of those joins
    #    all tasks of both.
    demands = [_demand(task) for _, task in taken]
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, task in enumerate(tasks):
        demand = frozenset(demands[place].items())
        key = (task.name, frozenset(edges[place]), frozenset(followed[place]), demand)
        groups.setdefault(key, []).append(place)
    names = {place: tasks[members[0]].key() for members in groups.values() for place in members}
    # 2. Each is named after its first task.
    firsts = [members[0] for members in groups.values()]
    stages = [
        StageLine(
            name=names[first],
            demand=dict(demands[first]),
            seconds=[_seconds(where, *taken[place]) for place in members],
            tasks=len(members),
            parents=sorted({names[parent] for parent in edges[first]}),
        )
        for first, members in zip(firsts, groups.values(), strict=True)
    ]
    fields = tuple((f"{field}[{first}]{tasks[first].words()}", _demand_field(*taken[first])) for first in firsts)
    return _WorkflowLine(job=document.name[:253], stages=stages, fields=fields)


def _found(where: str, workflow: _Workflow) -> tuple[str, Sequence[_Task], Sequence[tuple[str, _Task]]]:
    """Return the field of the tasks, the tasks, and for each what it took and the field of that."""
    if workflow.specification is None:
        field, both = ("workflow.tasks", workflow.tasks) if workflow.tasks else ("workflow.jobs", workflow.jobs)
        if not both:
            raise TraceError(f"{where}: field workflow: no tasks; needed: specification and execution, tasks, or jobs")
        return field, both, [(f"{field}[{place}]", task) for place, task in enumerate(both)]
    tasks, field = workflow.specification.tasks, "workflow.specification.tasks"
    if not tasks:
        raise TraceError(f"{where}: field {field}: there are none; needed: one or more")
    if workflow.execution is None:
        raise TraceError(f"{where}: field workflow: no execution, so nobody knows what tasks take; needed: execution")
    taken = "workflow.execution.tasks"
    places = _places(where, taken, workflow.execution.tasks)
    for place, task in enumerate(tasks):
        if task.id not in places:
            raise TraceError(f"{where}: field {field}[{place}].id: {shown(task.id)!r} is not in {taken}")
    rows = [places[task.id] for task in tasks]
    return field, tasks, [(f"{taken}[{place}]", workflow.execution.tasks[place]) for place in rows]


def _places(where: str, field: str, tasks: Sequence[_Task]) -> dict[str, int]:
    """Return the place of each task by what it alone is called."""
    places: dict[str, int] = {}
    for place, task in enumerate(tasks):
        key = task.key()
        if not key:
            raise TraceError(f"{where}: field {field}[{place}]: it has no id; accepted: id, or name")
        if key in places:
            part = "id" if task.id else "name"
            raise TraceError(
                f"{where}: field {field}[{place}].{part}: {shown(key)!r} stands twice; accepted: each once"
            )
        places[key] = place
    return places


def _edges(where: str, field: str, tasks: Sequence[_Task]) -> list[set[int]]:
    """Return the parents of each task: those that it names, and those that name it as a child.

    Up to version 1.3 names stand there; one that many tasks share says nothing.
    """
    counts = Counter(task.name for task in tasks if task.name)
    alone = {task.name: place for place, task in enumerate(tasks) if counts[task.name] == 1}
    places = alone | _places(where, field, tasks)
    edges: list[set[int]] = [set() for _ in tasks]
    for place, task in enumerate(tasks):
        for kind, others in (("parents", task.parents), ("children", task.children)):
            for number, other in enumerate(others):
                if other not in places:
                    known = f"{counts[other]} tasks are called" if other in counts else "there is no task"
                    raise TraceError(
                        f"{where}: field {field}[{place}].{kind}[{number}]{task.words()}: {known} {shown(other)!r}; "
                        "accepted: an id, or a name that only one task has"
                    )
                parent, child = (places[other], place) if kind == "parents" else (place, places[other])
                edges[child].add(parent)
    return edges


def _demand(took: _Task) -> Mapping[str, float]:
    """Return what a task demands: its cores (1 where it says none), and its memory if it says that."""
    cores = took.core_count if took.core_count is not None else took.cores
    memory = took.memory_in_bytes if took.memory_in_bytes is not None else (took.memory or 0.0) * _MEMORY_UNIT
    return {"cpu": cores or 1.0} | ({"memory": memory} if memory else {})


def _demand_field(field: str, took: _Task) -> str:
    """Return the fields that say what a task demands; that of the task where none does."""
    amounts = {"coreCount": took.core_count, "cores": took.cores, "memoryInBytes": took.memory_in_bytes}
    given = [name for name, amount in (amounts | {"memory": took.memory}).items() if amount is not None]
    return " and ".join(f"{field}.{name}" for name in given) + took.words() if given else field + took.words()


def _seconds(where: str, field: str, took: _Task) -> float:
    seconds = took.runtime_in_seconds if took.runtime_in_seconds is not None else took.runtime
    if seconds is None:
        raise TraceError(f"{where}: field {field}{took.words()}: nobody says what it took; needed: runtimeInSeconds")
    return max(seconds, _SHORTEST)

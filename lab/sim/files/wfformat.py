"""Reads WfFormat, in which WfCommons publishes the DAGs of scientific workflows: one JSON document, one job.

Versions 1.5 and later say what there is to do in `workflow.specification` and what it took in `workflow.execution`;
those before say both in `workflow.tasks`, up to 1.3 under other names, the first ones in `workflow.jobs`. Tasks that
are alike in all but their durations become one stage.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from extender.errors import TraceError
from lab.sim.files.format import JobLine, StageLine
from lab.sim.files.lines import LONGEST_LINE, mistake

_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e18)]

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
    runtime_in_seconds: _Amount | None = None
    runtime: _Amount | None = None
    core_count: _Amount | None = None
    cores: _Amount | None = None
    memory_in_bytes: _Amount | None = None
    memory: _Amount | None = None


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


def wfformat_job(path: Path) -> Iterator[tuple[str, JobLine]]:
    """Yield where the job of a document is and what it is. Raises TraceError, naming file and field."""
    where = str(path)
    try:
        if path.stat().st_size > LONGEST_LINE:
            raise TraceError(f"{where}: over {LONGEST_LINE} bytes; accepted: at most as many")
        document = msgspec.json.decode(path.read_bytes(), type=_Document)
    except OSError as error:
        raise TraceError(f"{where} cannot be read: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise TraceError(f"{where}: {mistake(error, _Document)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{where}: not one JSON document (is it cut off?): {error}") from None
    yield where, JobLine(job=document.name[:253], stages=_stages(where, document.workflow))


def _stages(where: str, workflow: _Workflow) -> list[StageLine]:
    """Return the stages of a workflow."""
    field, tasks, taken = _found(where, workflow)
    places = _places(where, field, tasks)
    edges = _edges(where, field, tasks, places)
    followed: list[list[int]] = [[] for _ in tasks]
    for child, parents in enumerate(edges):
        for parent in parents:
            followed[parent].append(child)
    # 1. Tasks of one name with the same parents, children and demand are a stage: an edge between two of those joins
    #    all tasks of both.
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, task in enumerate(tasks):
        demand = tuple(sorted(_demand(taken[place]).items()))
        key = (task.name, frozenset(edges[place]), frozenset(followed[place]), demand)
        groups.setdefault(key, []).append(place)
    names = {place: _id(tasks[members[0]]) for members in groups.values() for place in members}
    # 2. Each is named after its first task.
    return [
        StageLine(
            name=names[first],
            demand=dict(_demand(taken[first])),
            seconds=[_seconds(where, f"{field}[{place}]", taken[place]) for place in members],
            tasks=len(members),
            parents=sorted({names[parent] for parent in edges[first]}),
        )
        for members in groups.values()
        for first in members[:1]
    ]


def _found(where: str, workflow: _Workflow) -> tuple[str, Sequence[_Task], Sequence[_Task]]:
    """Return the field of the tasks, the tasks, and for each what it took."""
    if workflow.specification is None:
        field, both = ("workflow.tasks", workflow.tasks) if workflow.tasks else ("workflow.jobs", workflow.jobs)
        if not both:
            raise TraceError(f"{where}, field workflow: no tasks; needed: specification and execution, tasks, or jobs")
        return field, both, both
    tasks, field = workflow.specification.tasks, "workflow.specification.tasks"
    if not tasks:
        raise TraceError(f"{where}, field {field}: there are none; needed: one or more")
    if workflow.execution is None:
        raise TraceError(f"{where}, field workflow: no execution, so nobody knows what tasks take; needed: execution")
    took = {task.id: task for task in workflow.execution.tasks}
    for place, task in enumerate(tasks):
        if task.id not in took:
            raise TraceError(f"{where}, field {field}[{place}].id: {task.id!r} is not in workflow.execution.tasks")
    return field, tasks, [took[task.id] for task in tasks]


def _id(task: _Task) -> str:
    return (task.id or task.name)[:253]


def _places(where: str, field: str, tasks: Sequence[_Task]) -> Mapping[str, int]:
    """Return the place of each task by what may name it: its ID, or, up to version 1.3, its name."""
    places: dict[str, int] = {}
    for place, task in enumerate(tasks):
        if not _id(task):
            raise TraceError(f"{where}, field {field}[{place}]: it has no id; accepted: id, or name")
        if _id(task) in places:
            raise TraceError(f"{where}, field {field}[{place}].id: {_id(task)!r} stands twice; accepted: each once")
        places[_id(task)] = place
    for place, task in enumerate(tasks):
        places.setdefault(task.name, place)
    return places


def _edges(where: str, field: str, tasks: Sequence[_Task], places: Mapping[str, int]) -> list[set[int]]:
    """Return the parents of each task: those that it names, and those that name it as a child."""
    edges: list[set[int]] = [set() for _ in tasks]
    for place, task in enumerate(tasks):
        for kind, others in (("parents", task.parents), ("children", task.children)):
            for number, other in enumerate(others):
                if other not in places:
                    raise TraceError(f"{where}, field {field}[{place}].{kind}[{number}]: there is no task {other!r}")
                parent, child = (places[other], place) if kind == "parents" else (place, places[other])
                edges[child].add(parent)
    return edges


def _demand(took: _Task) -> Mapping[str, float]:
    """Return what a task demands: its cores (1 where it says none), and its memory if it says that."""
    cores = took.core_count if took.core_count is not None else took.cores
    memory = took.memory_in_bytes if took.memory_in_bytes is not None else (took.memory or 0.0) * _MEMORY_UNIT
    return {"cpu": cores or 1.0} | ({"memory": memory} if memory else {})


def _seconds(where: str, field: str, took: _Task) -> float:
    seconds = took.runtime_in_seconds if took.runtime_in_seconds is not None else took.runtime
    if seconds is None:
        raise TraceError(f"{where}, field {field}: nobody says what it took; needed: runtimeInSeconds")
    return max(seconds, _SHORTEST)

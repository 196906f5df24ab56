"""What `dovetail locality` prints: how long to wait for a target locality, or what a wait comes to (equation 2)."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from extender.app.inspection.measured import Measured, NotMeasured
from extender.policy.locality import expected_locality, least_locality, rate_of_room, skips_for, skips_in, wait_for

GIVEN, MEASURED, DEFAULT = "given", "measured", "default"
TASKS, NODES, REPLICAS, SLOTS, TASK_SECONDS = 20, 100, 3, 8.0, 20.0
"""The defaults where nothing is given or measured; slots are tasks per node."""

MOST = 1_000_000
"""So many tasks, nodes and replicas are reckoned with at most."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the user gives; None: not given. Either `target`, a part of tasks, or `wait` in seconds is there."""

    target: float | None = None
    wait: float | None = None
    tasks: int | None = None
    nodes: int | None = None
    replicas: int | None = None
    slots: float | None = None
    task_seconds: float | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class LocalityWaitQuestion:
    """A job of so many `tasks`, on so many `nodes`; `rate` is how many places free up per second under load.

    Either `target`, a part of its tasks, or `wait` in seconds is there. `sources` says where the other numbers come
    from: given, measured or default.
    """

    tasks: int
    nodes: int
    replicas: int
    rate: float
    target: float | None
    wait: float | None
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LocalityWaitAnswer:
    """`skips` D, `wait_seconds` W1, the `expected` locality by the sum of 3.5, and `least` by its closed form."""

    skips: float
    wait_seconds: float
    expected: float
    least: float
    rate: float


def question(given: Given, measured: Measured | None) -> LocalityWaitQuestion:
    """Return the whole question: as given, else as measured, else by default. Raises NotMeasured."""
    tasks, tasks_by = _first(given.tasks, measured.tasks if measured else None, TASKS)
    replicas, replicas_by = _first(given.replicas, measured.replicas if measured else None, REPLICAS)
    nodes = given.nodes or (measured.known_nodes() if measured else NODES)
    rate = given.rate or (measured.rate() if measured else _rate_of_full(nodes, given))
    if not (1 <= min(tasks, nodes, replicas) <= max(tasks, nodes, replicas) <= MOST and 0 < rate < math.inf):
        numbers = f"{tasks:g} tasks, {nodes:g} nodes, {replicas:g} replicas and a rate of {rate:g}"
        raise NotMeasured(f"{numbers} cannot be; accepted: 1 to {MOST} and a rate above 0; give them as options")
    sources = {
        "tasks": tasks_by,
        "nodes": GIVEN if given.nodes else MEASURED if measured else DEFAULT,
        "replicas": replicas_by,
        "rate": GIVEN if given.rate or given.slots or given.task_seconds else MEASURED if measured else DEFAULT,
    }
    return LocalityWaitQuestion(tasks, nodes, replicas, rate, given.target, given.wait, sources)


def answer(question: LocalityWaitQuestion) -> LocalityWaitAnswer:
    """Return the wait for a target, or what a wait comes to."""
    sizes = {"tasks": question.tasks, "nodes": question.nodes, "replicas": question.replicas}
    skips = (
        skips_in(question.wait, question.rate)
        if question.wait is not None
        else skips_for(question.target or 0.0, **sizes)
    )
    return LocalityWaitAnswer(
        skips=skips,
        wait_seconds=wait_for(skips, question.rate),
        expected=expected_locality(skips, **sizes),
        least=least_locality(skips, **sizes),
        rate=question.rate,
    )


def words(question: LocalityWaitQuestion, answer: LocalityWaitAnswer, measured: Measured | None) -> str:
    """Return an answer for people."""
    lines = (
        f"a job of {_many(question.tasks, 'task')}, {_many(question.nodes, 'node')}, "
        f"{_many(question.replicas, 'copy', 'copies')} of each input:",
        f"  room frees up        {answer.rate:.4g} times per second under load",
        f"  D, chances to pass   {answer.skips:.1f}",
        f"  W1, the wait         {answer.wait_seconds:.3g} s",
        f"  expected locality    {answer.expected:.1%}  (closed form of equation 2, below it: {answer.least:.1%})",
    )
    return "\n".join((*lines, *(_measured_words(question, measured) if measured else ())))


def as_json(question: LocalityWaitQuestion, answer: LocalityWaitAnswer, measured: Measured | None) -> str:
    """Return an answer for programs."""
    sizes = {
        "tasks": question.tasks,
        "nodes": question.nodes,
        "replicas": question.replicas,
        "told_by": dict(question.sources),
    }
    return json.dumps({**asdict(answer), **sizes, "measured": asdict(measured) if measured else None})


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"


def _first(given: int | None, measured: int | None, otherwise: int) -> tuple[int, str]:
    """Return the first that is there, and what it is."""
    if given is not None:
        return given, GIVEN
    return (measured, MEASURED) if measured is not None else (otherwise, DEFAULT)


def _rate_of_full(nodes: int, given: Given) -> float:
    """Return how many places free up per second where all are busy."""
    return rate_of_room(nodes * (given.slots or SLOTS), given.task_seconds or TASK_SECONDS)


def _measured_words(question: LocalityWaitQuestion, measured: Measured) -> tuple[str, ...]:
    """Return the measurements that the answer rests on, and the locality that the present waits led to."""
    freed = f"{measured.freed or 0:,} times in {measured.loaded_seconds or 0.0:,.0f} s under load"
    by_default = [name for name, source in question.sources.items() if source == DEFAULT]
    return (
        f"by the metrics of {measured.source}:",
        f"  room freed up        {freed}",
        f"  locality so far      {_by_level(measured.placements)}",
        *((f"  not measured yet     {', '.join(by_default)}: by default",) if by_default else ()),
    )


def _by_level(placements: Mapping[str, int]) -> str:
    total = sum(placements.values())
    if not total:
        return "nothing started that has a preferred node"
    parts = ", ".join(f"{level} {count / total:.1%}" for level, count in placements.items())
    return f"{parts}  (of {total:,} pods)"

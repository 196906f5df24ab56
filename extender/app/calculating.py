"""What `dovetail locality` prints: how long to wait for a target locality, or what a wait comes to (equation 2)."""

import json
from dataclasses import asdict, dataclass

from extender.policy.locality import expected_locality, least_locality, rate_of_room, skips_for, skips_in, wait_for


@dataclass(frozen=True, slots=True)
class Question:
    """A job of so many `tasks`, on so many `nodes`; `rate` is how many places free up per second under load.

    Either `target`, a part of its tasks, or `wait` in seconds is given.
    """

    tasks: int
    nodes: int
    replicas: int
    rate: float
    target: float | None = None
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """`skips` D, `wait_seconds` W1, the `expected` locality by the sum of 3.5, and `least` by its closed form."""

    skips: float
    wait_seconds: float
    expected: float
    least: float
    rate: float


def rate_of(nodes: int, slots: float, task_seconds: float) -> float:
    """Return how many places free up per second where all of so many per node are busy."""
    return rate_of_room(nodes * slots, task_seconds)


def answer(asked: Question) -> Answer:
    """Return the wait for a target, or what a wait comes to."""
    sizes = {"tasks": asked.tasks, "nodes": asked.nodes, "replicas": asked.replicas}
    skips = skips_in(asked.wait, asked.rate) if asked.wait is not None else skips_for(asked.target or 0.0, **sizes)
    return Answer(
        skips=skips,
        wait_seconds=wait_for(skips, asked.rate),
        expected=expected_locality(skips, **sizes),
        least=least_locality(skips, **sizes),
        rate=asked.rate,
    )


def words(asked: Question, found: Answer) -> str:
    """Return an answer for people."""
    return "\n".join(
        (
            f"a job of {asked.tasks} tasks, {asked.nodes} nodes, {asked.replicas} copies of each input:",
            f"  room frees up        {found.rate:.4g} times per second under load",
            f"  D, chances to pass   {found.skips:.1f}",
            f"  W1, the wait         {found.wait_seconds:.3g} s",
            f"  expected locality    {found.expected:.1%}  (closed form of equation 2, below it: {found.least:.1%})",
        )
    )


def as_json(found: Answer) -> str:
    """Return an answer for programs."""
    return json.dumps(asdict(found))

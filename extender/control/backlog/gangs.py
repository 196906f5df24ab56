"""Pod groups with a minimum: how many of their pods have still to start together, and which have begun."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass


@dataclass(frozen=True, slots=True)
class Gang:
    """A pod group: `least` of its pods have still to start together; `missing` of them are not there yet.

    `begun`: some have started, so that the rest is awaited by pods that hold their nodes for nothing.
    """

    least: int
    missing: int
    begun: bool


def group_of(of: TaskClass) -> str:
    """Return the pod group of a class, if any."""
    return of.like.identity.group


def gangs_of(backlog: Backlog, classes: Sequence[TaskClass]) -> dict[str, Gang]:
    """Return the groups with a minimum that is not met yet, by name."""
    grouped = [it for it in classes if it.like.identity.group]
    ready: dict[str, int] = {}
    for it in grouped:
        name = group_of(it)
        ready[name] = ready.get(name, 0) + backlog.ready(it)
    found = {}
    for name, (least, started) in _started(backlog, grouped).items():
        if least > started:
            found[name] = Gang(least - started, max(least - started - ready[name], 0), started > 0)
    return found


def partial_gangs(backlog: Backlog, nominated: Sequence[Pod]) -> set[str]:
    """Return the groups of which none has been released, and that these nominated pods would start in part."""
    counts: dict[str, int] = {}
    for pod in nominated:
        if pod.identity.group:
            counts[pod.identity.group] = counts.get(pod.identity.group, 0) + 1
    if not counts:
        return set()
    started = _started(backlog, backlog.classes(), nominated=False)
    return {name for name, count in counts.items() if started[name][1] == 0 and count < started[name][0]}


def _started(
    backlog: Backlog, classes: Sequence[TaskClass], *, nominated: bool = True
) -> Mapping[str, tuple[int, int]]:
    """Return each group's minimum, and how many of its pods have started (or, if so asked, are `nominated`) and not
    failed; those that are leaving have not.
    """  # noqa: D205 - one sentence
    found: dict[str, tuple[int, int]] = {}
    for it in classes:
        name = group_of(it)
        if not name:
            continue
        known = backlog.workloads.groups.get(name)
        least, started = found.get(name, (0, backlog.workloads.ended(name)))
        started += sum(
            not pod.leaving for stage in (PodPhase.RUNNING, PodPhase.PENDING) for pod in it.pods[stage].values()
        )
        started += sum(uid in backlog.writes.claimed for uid in it.pods[PodPhase.READY])
        started += len(it.pods[PodPhase.NOMINATED]) if nominated else 0
        found[name] = (max(least, known.least if known is not None else it.like.identity.least), started)
    return found

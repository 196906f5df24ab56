"""The scenario: what happens on the cluster, one phase after the other. Nothing here is measured.

1. fill: Jobs wait; pods start on idle room until T_alloc.
2. cpu, memory, disk: what regular pods use jumps past T_preempt; opportunistic pods are evicted.
3. budget: the same, where a PodDisruptionBudget forbids to evict those that would go first.
4. promote: a regular pod ends; opportunistic ones get its room.
5. break, outage, after: Prometheus is gone while there are idle room, an overload and regular work; then it is back.
6. end: all pods of the Jobs end well, until the Jobs are complete.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from extender.cluster.resources import CPU, DISK_READ, MEMORY
from lab.controlplane import builders, showing, workload
from lab.experiments.ubis.real.outages import OUTAGES
from lab.experiments.ubis.real.scale import BASE_USE, OFFERED, SCAN, T_ALLOC, T_PREEMPT, TASK, WINDOW_SECONDS
from lab.experiments.ubis.real.stage import JOB_LABEL, ExperimentCluster, Span

SETTLE_SECONDS = WINDOW_SECONDS + 5.0
"""After so long all that a phase began is over, and nothing of it is left in the window of a rate."""

_FILL_SECONDS = _AGAIN_SECONDS = 180.0
_END_SECONDS = 300.0
_ABOVE = 1.5
"""An overload is by so many pods, so that neither one nor three are the fewest."""

_LESS_USE = 0.06
GUARDED = "guarded"
_GUARDED_PODS = 4
_FIRST = "first"
_LATE_CPU_MILLIS = 500


def play(stage: ExperimentCluster) -> None:
    """Play all phases."""
    with _phase(stage, "fill"):
        _fill(stage)
        stage.pause(SETTLE_SECONDS)
    with _phase(stage, "filled"):
        stage.pause(SETTLE_SECONDS)
    count = stage.scale.rounds
    with _phase(stage, "cpu"):
        _overload(stage, dict.fromkeys(stage.nodes[:count], CPU))
    with _phase(stage, "memory"):
        _overload(stage, {stage.nodes[-1]: MEMORY})
    with _phase(stage, "disk"):
        _overload(stage, {_most(stage, DISK_READ): DISK_READ})
    with _phase(stage, "budget"):
        _budget(stage, stage.nodes[0])
    with _phase(stage, "promote"):
        _promote(stage, stage.nodes[1])
    for outage in stage.scale.outages:
        _outage(stage, outage)
    with _phase(stage, "end"):
        _end(stage)


@contextmanager
def _phase(stage: ExperimentCluster, name: str, kind: str = "") -> Iterator[None]:
    begun = time.time()
    with showing.aloud(f"{name} {kind}".strip()):
        yield
    stage.spans.append(Span(name, begun, time.time(), kind))


def _fill(stage: ExperimentCluster) -> None:
    stage.create_job("scan", 6 * len(stage.nodes), SCAN)
    stage.create_job("task", stage.scale.backlog, TASK)
    lowest = T_ALLOC - TASK[CPU] / OFFERED[CPU] - 1e-6
    stage.wait(
        f"the use of CPU to rise to {T_ALLOC:g}",
        lambda: min(stage.use(node, CPU) for node in stage.nodes) > lowest,
        _FILL_SECONDS,
    )


def _overload(stage: ExperimentCluster, dimension_of: Mapping[str, str]) -> None:
    """Let what is used of these nodes jump past T_preempt; go on when enough of it is gone."""
    for node, dimension in dimension_of.items():
        stage.overload(node, dimension, _too_much(dimension))
    _relieved(stage, dimension_of)
    stage.pause(SETTLE_SECONDS)
    for node in dimension_of:
        stage.set_regular_use(node, {})


def _too_much(dimension: str) -> float:
    return T_PREEMPT + _ABOVE * SCAN[dimension] / OFFERED[dimension]


def _relieved(stage: ExperimentCluster, dimension_of: Mapping[str, str]) -> None:
    stage.wait(
        "evictions",
        lambda: all(stage.use(node, dimension) <= T_PREEMPT for node, dimension in dimension_of.items()),
    )


def _most(stage: ExperimentCluster, dimension: str) -> str:
    """Return the node whose opportunistic pods use most of something."""

    def use(node: str) -> float:
        return sum(state.use[dimension] for state in stage.opportunistic(node))

    return max(stage.nodes, key=use)


def _budget(stage: ExperimentCluster, node: str) -> None:
    """Let the youngest pods of a node be protected, so that others have to go."""
    stage.create_priority(_FIRST)
    selector = {"kubernetes.io/hostname": node}
    stage.create_job(GUARDED, _GUARDED_PODS, TASK, nodeSelector=selector, priorityClassName=_FIRST)
    stage.set_regular_use(node, {CPU: BASE_USE[CPU] - _LESS_USE})

    def guarded() -> bool:
        started = [state for state in stage.opportunistic(node) if state.labels.get(JOB_LABEL) == GUARDED]
        return len([state for state in started if state.phase == "Running"]) == _GUARDED_PODS

    stage.wait(f"{_GUARDED_PODS} pods of a protected class", guarded)
    stage.protect(GUARDED, _GUARDED_PODS)
    _overload(stage, {node: CPU})
    stage.unprotect(GUARDED)


def _promote(stage: ExperimentCluster, node: str) -> None:
    """Let a regular pod end; go on when no opportunistic pod of the node fits into what is free."""
    regular = [state.name for state in stage.plane.recording.on(node) if state.name.startswith("regular-")]
    stage.end_pods(regular[:1])

    def full() -> bool:
        states = stage.plane.recording.on(node)
        if regular[0] in {state.name for state in states}:
            return False
        free = OFFERED[CPU] - sum(state.counted.get(CPU, 0.0) for state in states)
        return free < TASK[CPU] or not any(state.opportunistic for state in states)

    stage.wait("promotions", full)
    stage.pause(SETTLE_SECONDS)


def _outage(stage: ExperimentCluster, how: str) -> None:
    """Let Prometheus be gone, with idle room, an overload and regular work; then wait for what was due all the time."""
    break_off, bring_back = (partial(act, stage.plane) for act in OUTAGES[how])
    crowded = _most(stage, CPU)
    idle = next(node for node in stage.nodes if node != crowded)
    late = f"late-{how}"
    with _phase(stage, "break", how):
        break_off()
        stage.wait("control to see that nothing is measured", lambda: not any(stage.plane.measured()))
    with _phase(stage, "outage", how):
        stage.overload(crowded, CPU, _too_much(CPU))
        used = sum(state.use[CPU] for state in stage.plane.recording.on(idle) if state.name.startswith("regular-"))
        stage.set_regular_use(idle, {CPU: used / OFFERED[CPU] - _LESS_USE})
        workload.create_nodes(stage.client, [builders.node(late, cpu=f"{_LATE_CPU_MILLIS}m", memory="4Gi")])
        stage.wait("regular work", _full(stage, late))
        stage.pause(stage.scale.outage_seconds)
        before = {state.uid for state in stage.opportunistic(idle)}
        bring_back()
    with _phase(stage, "after", how):
        _relieved(stage, {crowded: CPU})
        stage.wait(
            "pods on idle room again",
            lambda: {state.uid for state in stage.opportunistic(idle)} - before,
            _AGAIN_SECONDS,
        )
        stage.pause(SETTLE_SECONDS)
        stage.set_regular_use(crowded, {})


def _full(stage: ExperimentCluster, node: str) -> Callable[[], bool]:
    """Return whether as many regular pods as fit are on a late node."""
    count = int(_LATE_CPU_MILLIS // TASK[CPU])
    return lambda: len([state for state in stage.plane.recording.on(node) if not state.opportunistic]) >= count


def _end(stage: ExperimentCluster) -> None:
    def complete() -> bool:
        running = [state for state in stage.plane.recording.now() if state.there and state.phase == "Running"]
        stage.end_pods(state.name for state in running if JOB_LABEL in state.labels and not state.leaving)
        return all(stage.job_counts(name)[0] >= count for name, count in stage.completions.items())

    stage.wait("the Jobs to be complete", complete, _END_SECONDS)

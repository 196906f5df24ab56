"""The rows, tables and figure of a run on the real cluster."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from extender.arrays import Floats
from lab.experiments.sections import Figure, Listing, Plot, Section
from lab.experiments.seeds import Seeds
from lab.experiments.ubis.real import counts
from lab.experiments.ubis.real.course import FinishedRun
from lab.experiments.ubis.real.decisions import Decision, decisions
from lab.experiments.ubis.real.phases import GUARDED
from lab.experiments.ubis.real.scale import T_ALLOC, T_PREEMPT

_ABOUT = (
    "A real control plane (Kubernetes {version}) with a real Prometheus. {nodes} nodes of KWOK are full to the last "
    "millicore, at half use. serve and both replicas of control are killed at random all the time ({kills})."
)


def section(course: FinishedRun) -> Section:
    """Return what is shown of a run."""
    made = decisions(course, GUARDED)
    kills = ", ".join(f"{name} {count}" for name, count in sorted(Counter(name for _, name in course.kills).items()))
    return Section(
        title="On a real control plane",
        about=_ABOUT.format(version=course.kubernetes, nodes=len(course.nodes), kills=kills or "none yet"),
        figures=[*_use_figures(course), *_eviction_figures(course, made), *_other_figures(course)],
        listings=[_decisions(course, made), _spans(course)],
        plots=[_plot(course)],
    )


def _use_figures(course: FinishedRun) -> list[Figure]:
    used = 100 * counts.use_after(course)
    return [
        _figure("used_after", float(used.mean()), f"of CPU, mean of the nodes; T_alloc is {100 * T_ALLOC:g} %", "%"),
        _figure("used_after.least", float(used.min()), "the node that uses least", "%"),
        _figure("used_after.most", float(used.max()), "the node that uses most", "%"),
        _figure(
            "used_most",
            100 * counts.use_most(course),
            f"largest sample while idle room is filled; T_preempt is {100 * T_PREEMPT:g} %",
            "%",
        ),
    ]


def _eviction_figures(course: FinishedRun, made: Sequence[Decision]) -> list[Figure]:
    usual = [one for one in made if one.phase in ("cpu", "memory", "disk")]
    led = [one.samples for one in usual if one.led]
    free = [one for one in made if one.phase != "budget"]
    budget = course.span("budget")
    guarded = sum(write.pod.startswith(GUARDED) and write.at <= budget.ended for write in course.evictions)
    return [
        _figure("evicted", sum(one.evicted for one in free), "by the audit log, where no budget forbids any"),
        _figure("evictions_needed", sum(one.needed for one in free), "the smallest sets, on the recorded use"),
        _figure("evicted.budget", sum(one.evicted for one in made if one not in free), "where a budget forbids some"),
        _figure(
            "samples_to_evict",
            max(led, default=np.nan),
            f"most samples above the limit until an eviction, of {len(led)} decisions under one leader; memory takes 1",
        ),
        _figure(
            "samples_to_evict.all",
            max((one.samples for one in made), default=np.nan),
            "leaders killed meanwhile, refusals by a budget, and after outages too",
        ),
        _figure("regular_evicted", counts.regular_evicted(course)),
        _figure("evicted_twice", counts.evicted_twice(course)),
        _figure("evicted_guarded", guarded, "pods whose PodDisruptionBudget forbade it then"),
        _figure("refused", sum(write.forbidden for write in course.writes), "evictions that the budget forbade"),
    ]


def _other_figures(course: FinishedRun) -> list[Figure]:
    on_idle_room, regular = counts.released_unmeasured(course)
    promoted, left = counts.promoted(course)
    writes, later = counts.writes_to_release(course), counts.writes_to_promote(course)
    return [
        _figure("released_without_metrics", on_idle_room, "pods that went to idle room while nothing was measured"),
        _figure("evicted_without_metrics", counts.evicted_unmeasured(course)),
        _figure("regular_without_metrics", regular, "regular pods released meanwhile"),
        _figure("promoted", promoted, "when a regular pod ended"),
        _figure("promoted.missed", left, "opportunistic pods of that node that would have fit as well"),
        _figure("released", len(writes), "pods that went to idle room"),
        _figure("writes_per_pod", float(writes.max(initial=0)), f"at most, to the release; mean {_mean(writes)}"),
        _figure(
            "writes_per_pod.after",
            float(later.max(initial=0)),
            f"at most, after the release, of promoted pods; mean {_mean(later)}",
        ),
        _figure("lost", counts.lost(course), "pods of Jobs that did not end well"),
        _figure("kills", len(course.kills)),
    ]


def _figure(name: str, value: float, note: str = "", unit: str = "") -> Figure:
    return Figure(f"real.{name}", Seeds((float(value),)), note=note, unit=unit)


def _mean(values: Floats) -> str:
    return f"{values.mean():.2f}" if len(values) else "none"


def _decisions(course: FinishedRun, made: Sequence[Decision]) -> Listing:
    begun = course.span("fill").begun
    return Listing(
        ("evictions at, s", "node", "phase", "evicted", "fewest", "samples above", "one leader"),
        [
            (
                f"{one.at - begun:.0f}",
                one.node,
                one.phase,
                str(one.evicted),
                str(one.needed),
                str(one.samples),
                "yes" if one.led else "no",
            )
            for one in made
        ],
    )


def _spans(course: FinishedRun) -> Listing:
    return Listing(
        ("phase", "seconds"),
        [(f"{span.name} {span.kind}".strip(), f"{span.ended - span.begun:.0f}") for span in course.spans],
    )


def _plot(course: FinishedRun) -> Plot:
    def draw() -> str:
        from lab.experiments.ubis.real import plots

        return plots.use(course)

    return Plot(
        "Use of each node",
        "Dashed: T_alloc. Dotted: T_preempt. Grey: Prometheus is gone.",
        draw,
    )

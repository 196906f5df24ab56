"""The plots of a packing report, after figures 2 to 5 of "Evaluating job packing in warehouse-scale computing"."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from lab.packing.reporting import Filled, PackingReport, Under
from lab.report.drawing import COLOURS, finish, svg

_WIDE = 10.0
_LIGHT = 0.45
_MANY = 3
"""The names of more policies than these do not fit beside each other under half a figure."""


def plots(report: PackingReport) -> dict[str, tuple[str, str]]:
    """Return the plots as SVG elements, each with a note on how to read it, by what they show."""
    drawn = {}
    if any(under.compacted for under in report.policies):
        drawn["Nodes that are enough"] = (
            svg("nodes", (_WIDE, 3.2), (1, 1), lambda axes: _draw_sizes(axes[0], report)),
            "A point is a trial, with the nodes in another random order. The bar ends at the 90th percentile. No "
            "placement can do with less than the short line. The dotted line is the number of your nodes.",
        )
    drawn["What is allocated"] = (
        svg("allocated", (_WIDE, 3.2), (1, 2), lambda axes: _draw_allocated(axes, report)),
        "Dark: what is allocated. Light: what is, once the holes are filled with units. White above is lost.",
    )
    if any(under.inflated for under in report.policies):
        drawn["How far the workload can grow"] = (
            svg("growth", (_WIDE, 3.2), (1, 1), lambda axes: _draw_growth(axes[0], report.policies)),
            "To how many times itself, on all your nodes: more tasks, or larger ones; with picky tasks and without.",
        )
    return drawn


def _draw_sizes(axes: Axes, report: PackingReport) -> None:
    for place, (under, colour) in enumerate(zip(report.policies, COLOURS, strict=False)):
        compacted = under.compacted
        if compacted is None:
            continue
        axes.bar(place, compacted.machines, width=0.6, color=colour, alpha=_LIGHT)
        spread = np.linspace(-0.2, 0.2, len(compacted.sizes)) if len(compacted.sizes) > 1 else np.zeros(1)
        axes.plot(place + spread, compacted.sizes, "o", color=colour, markersize=4)
        axes.hlines(compacted.lower_bound, place - 0.3, place + 0.3, color="#222222", linewidth=1.5)
    axes.axhline(report.machines, color="#999999", linestyle=":", linewidth=1.2)
    axes.set_xticks(range(len(report.policies)), [under.policy for under in report.policies])
    finish(axes, "Cluster compaction", "nodes", "policy", legend=False)


def _draw_allocated(axes: Sequence[Axes], report: PackingReport) -> None:
    filled: dict[str, Filled] = {"now": report.now} if report.now is not None else {}
    filled |= {under.policy: under.holes for under in report.policies}
    for plot, resource in zip(axes, ("cpu", "memory"), strict=True):
        before = [getattr(one.before, resource) for one in filled.values()]
        after = [getattr(one.after, resource) for one in filled.values()]
        plot.bar(range(len(filled)), after, width=0.6, color=COLOURS[0], alpha=_LIGHT)
        plot.bar(range(len(filled)), before, width=0.6, color=COLOURS[0])
        plot.set_xticks(range(len(filled)), list(filled), rotation=20 if len(filled) > _MANY else 0)
        name = "CPU" if resource == "cpu" else "Memory"
        finish(plot, name, "% of the cluster", "", legend=False)
        plot.set_ylim(0, max(100.0, *after))


def _draw_growth(axes: Axes, policies: Sequence[Under]) -> None:
    factors: dict[str, Mapping[str, float]] = {}
    for under in policies:
        factors[under.policy] = {f"{one.way}, {one.classes}": one.factor for one in under.inflated}
    ways = list(dict.fromkeys(way for by_way in factors.values() for way in by_way))
    width = 0.8 / max(len(policies), 1)
    for place, ((policy, by_way), colour) in enumerate(zip(factors.items(), COLOURS, strict=False)):
        offset = (place - (len(factors) - 1) / 2) * width
        axes.bar(
            np.arange(len(ways)) + offset, [by_way.get(way, 0.0) for way in ways], width, color=colour, label=policy
        )
    axes.axhline(1.0, color="#999999", linestyle=":", linewidth=1.2)
    axes.set_xticks(range(len(ways)), ways)
    finish(axes, "Workload inflation", "times itself", "")

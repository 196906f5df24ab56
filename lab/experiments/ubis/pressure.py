"""Evictions for CPU by pressure (how long regular tasks wait for it) beside those by use (how full it is)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from extender.cluster.resources import CPU, MEMORY
from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.ubis.groups import (
    Results,
    UbisPart,
    UbisScale,
    cell,
    compared,
    less,
    makespan,
    over,
    preempted,
    seeded,
    share,
)
from lab.experiments.ubis.pipelines import FIXED, slowdown
from lab.experiments.ubis.runs import UbisOutcome, UbisRun
from lab.sim.opportunistic.ubis import STARVED

T_ALLOC = FIXED[-1]
KERNEL_WEIGHT = 1 / 39
"""cpu.weight of a pod without requests beside that of one core, by the kubelet's conversion: 1 and 39 (KEP 2254)."""


def fewer(ours: UbisOutcome, base: UbisOutcome) -> float:
    """Return by how many percent fewer containers were preempted than in another run; 0 where none was in that."""
    return 100.0 * (1.0 - ours.preempted / base.preempted) if base.preempted else 0.0


def pressure(scale: UbisScale, seeds: Sequence[int]) -> UbisPart:
    """Return the part that compares the two reasons to evict for CPU."""
    bursts = UbisRun(replace(scale.pipelines, mix=("bursts",)), None, 0)
    pipelines = UbisRun(scale.pipelines, None, 0)
    cases = (
        ("bursts, CPU by weight", bursts, KERNEL_WEIGHT),
        ("bursts, regular tasks first", bursts, 0.0),
        ("bursts, CPU knows no order", bursts, 1.0),
        ("pipelines, CPU by weight", pipelines, KERNEL_WEIGHT),
    )
    pairs = [
        (words, base, replace(base, t_alloc=T_ALLOC, cpu_weight=weight, by_pressure=by_pressure))
        for words, base, weight in cases
        for by_pressure in (False, True)
    ]
    words, base, by_weight = pairs[1]
    pairs.append((f"{words}, nobody moved", base, replace(by_weight, moves=False)))
    (_, base, by_use), (_, _, by_pressure) = pairs[:2]

    def section(results: Results) -> Section:
        lines = [
            (
                words,
                "pressure" if run.by_pressure else "use",
                cell(compared(results, run, base, seeds, less(makespan))),
                cell(over(results, run, seeds, share)),
                f"{over(results, run, seeds, preempted).mean:.2f}",
                *(cell(over(results, run, seeds, _evicted_for(name))) for name in (CPU, MEMORY, STARVED)),
                f"{over(results, run, seeds, lambda one: one.counts.lost_seconds).mean:.0f}",
                f"{compared(results, run, base, seeds, slowdown).mean:.2f}",
            )
            for words, base, run in pairs
        ]
        heads = ("jobs", "CPU evictions by", "makespan less by, %", "opportunistic, %", "preempted, %", "for CPU")
        return Section(
            title="Evictions by pressure",
            about=(
                "Tasks that request what they use in the middle of their time, and the three pipelines, at T_alloc "
                f"{T_ALLOC:g}. Opportunistic tasks are evicted where the CPU is full (use above 0.99), or where "
                "regular ones wait for it for more than a tenth of the time. By weight: where CPU is short, "
                "opportunistic tasks weigh 1 and a core of regular ones 39, as cgroups do. Who gets next to nothing of "
                "a full CPU for a while is moved."
            ),
            figures=[
                Figure(
                    "ubis.pressure.preemptions",
                    compared(results, by_pressure, by_use, seeds, fewer),
                    None,
                    "percent fewer than by use (bursts, CPU by weight); aim 50",
                ),
                Figure(
                    "ubis.pressure.regular_slowdown",
                    compared(results, by_pressure, base, seeds, slowdown),
                    None,
                    "tasks begun as regular, there; aim at most 2",
                ),
            ],
            listings=[Listing((*heads, "for memory", "moved", "seconds lost", "regular ones slower by, %"), lines)],
        )

    runs = dict.fromkeys(run for _, base, ours in pairs for run in (base, ours))
    return UbisPart("pressure", seeded(runs, seeds), section)


def _evicted_for(name: str) -> Callable[[UbisOutcome], float]:
    """Return how many of an outcome were evicted for this resource, or moved as they were starved."""
    return lambda outcome: outcome.evicted_for.get(name, 0)

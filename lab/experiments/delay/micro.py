"""The paper's microbenchmarks: small jobs, sticky slots, and how long to wait (Delay Scheduling, 5.2 and 5.3)."""

from collections.abc import Sequence

from extender.policy.locality import expected_locality
from lab.experiments.delay.groups import (
    TIMES,
    DelayPart,
    Group,
    Results,
    cell,
    local,
    makespan,
    over,
    plot,
    rack_local,
    where,
)
from lab.experiments.delay.scales import DelayScale
from lab.experiments.delay.scans import Scans
from lab.experiments.delay.trials import FIFO, Who
from lab.experiments.tetris.sections import Figure, Listing, Section

# Small jobs (5.2.2, table 4, figure 12)

_SMALL_PAPER = {3: (2, 50, 75, 96, 1.2), 10: (37, 98, 99, 100, 1.7), 100: (84, 99, 94, 99, 1.3)}


def small(scale: DelayScale, seeds: Sequence[int]) -> DelayPart:
    """Return the part on small jobs (5.2.2, table 4, figure 12)."""
    who = [
        Who("naive", waits=(0.0, 0.0)),
        Who("delay", waits=(15.0, 15.0)),
        Who("fifo", FIFO, waits=(0.0, 0.0)),
        Who("fifo, delay", FIFO, waits=(15.0, 15.0)),
        Who("ours", waits=(15.0, 15.0), whole=True),
    ]
    groups = {
        maps: Group(Scans((maps,) * jobs, at_once=scale.at_once), scale.private, who, seeds)
        for maps, jobs in scale.small.items()
    }

    def section(results: Results) -> Section:
        figures, lines = [], []
        for maps, group in groups.items():
            without, _, with_, _, faster = _SMALL_PAPER[maps]
            speed = group.ratio(results, "naive", "delay", makespan)
            figures += [
                Figure(
                    f"small.node_local.{maps}",
                    group.over(results, "delay", local),
                    with_,
                    "fair sharing, W1 = W2 = 15 s",
                ),
                Figure(
                    f"small.node_local_ours.{maps}",
                    group.over(results, "ours", local),
                    with_,
                    "the planner as a cluster runs it, W1 = W2 = 15 s",
                ),
                Figure(
                    f"small.node_local_without.{maps}",
                    group.over(results, "naive", local),
                    without,
                    "naive fair sharing",
                ),
                Figure(f"small.throughput.{maps}", speed, faster, "delay over naive fair sharing, makespans", TIMES),
                Figure(
                    f"small.throughput_ours.{maps}",
                    group.ratio(results, "delay", "ours", makespan),
                    None,
                    "the planner as a cluster runs it over fair sharing with delay scheduling",
                    TIMES,
                ),
            ]
            lines += [
                (
                    f"{maps} maps, {it.name}",
                    cell(group.over(results, it.name, local)),
                    cell(group.over(results, it.name, rack_local)),
                    cell(group.over(results, it.name, makespan), "s"),
                    cell(group.over(results, it.name, lambda found: float(found.seconds.mean())), "s"),
                )
                for it in who
            ]
        return Section(
            title="Small jobs (5.2.2, table 4)",
            about=f"{where(scale.private)}; {scale.at_once} jobs at a time; {over(seeds)}.",
            figures=figures,
            listings=[
                Listing(("jobs, who", "node-local", "rack-local", "makespan", "job time"), lines),
                Listing(
                    ("the paper", "node / rack without", "node / rack with", "throughput"),
                    [
                        (f"{maps} maps", f"{it[0]} / {it[1]}", f"{it[2]} / {it[3]}", f"{it[4]}x")
                        for maps, it in _SMALL_PAPER.items()
                    ],
                ),
            ],
        )

    return DelayPart("small", list(groups.values()), section)


# Sticky slots (5.2.3, figures 13 and 14)

_STICKY_LOCAL, _STICKY_FASTER = {5: 92, 50: 27}, {10: 1.1, 20: 1.6, 50: 2.0}


def sticky(scale: DelayScale, seeds: Sequence[int]) -> DelayPart:
    """Return the part on sticky slots (5.2.3, figures 13 and 14)."""
    who = [
        Who("naive", waits=(0.0,), reports=False),
        Who("delay", waits=(10.0,), reports=False),
        Who("ours", waits=(10.0,), whole=True),
    ]
    groups = {
        jobs: Group(Scans((scale.sticky_maps,) * jobs, shared=True), scale.ec2, who, seeds) for jobs in scale.sticky
    }

    def section(results: Results) -> Section:
        figures, lines = [], []
        for jobs, group in groups.items():
            without, with_, ours = (group.over(results, it.name, local) for it in who)
            bound = 100 * (1 - (1 - 1 / jobs) ** (3 * scale.ec2.slots))
            speed = group.ratio(results, "naive", "delay", makespan)
            figures += [
                Figure(f"sticky.locality.{jobs}", with_, 99, "with W1 = 10 s"),
                Figure(
                    f"sticky.locality_without.{jobs}",
                    without,
                    _STICKY_LOCAL.get(jobs),
                    f"at most {bound:.0f} % by 3.3.2",
                ),
                Figure(
                    f"sticky.throughput.{jobs}",
                    speed,
                    _STICKY_FASTER.get(jobs),
                    "delay over naive fair sharing, makespans",
                    TIMES,
                ),
                Figure(f"sticky.locality_ours.{jobs}", ours, 99, "the planner as a cluster runs it, W1 = 10 s"),
            ]
            spans = [cell(group.over(results, it.name, makespan), "s") for it in who]
            lines.append((f"{jobs} jobs", cell(without), f"{bound:.0f} %", cell(with_), cell(ours), *spans))
        heads = ("", "naive local", "bound 3.3.2", "delay local", "ours local", *(f"{it.name} makespan" for it in who))
        return Section(
            title="Sticky slots (5.2.3, figures 13 and 14)",
            about=f"{where(scale.ec2)}; all jobs at once scan the same {scale.sticky_maps} blocks; {over(seeds)}.",
            figures=figures,
            listings=[Listing(heads, lines)],
            plots=[
                plot(
                    "sticky-locality",
                    "Node locality (figure 13)",
                    "concurrent jobs",
                    "%",
                    list(groups),
                    {it.name: [group.over(results, it.name, local) for group in groups.values()] for it in who},
                ),
                plot(
                    "sticky-makespan",
                    "Time to finish all jobs (figure 14)",
                    "concurrent jobs",
                    "s",
                    list(groups),
                    {it.name: [group.over(results, it.name, makespan) for group in groups.values()] for it in who},
                ),
            ],
        )

    return DelayPart("sticky", list(groups.values()), section)


# How long to wait (5.3, figure 15)

_WAIT_PAPER = {(4, 0): 5, (4, 1): 68, (4, 10): 100, (12, 0): 11, (12, 1): 80, (12, 10): 99.8}


def wait(scale: DelayScale, seeds: Sequence[int]) -> DelayPart:
    """Return the part on how long to wait (5.3, figure 15)."""
    who = [Who(f"{wait:g}s", waits=(float(wait),)) for wait in scale.waits]
    groups = {
        maps: Group(Scans((maps,) * scale.wait_jobs, at_once=scale.at_once), scale.ec2, who, seeds) for maps in (4, 12)
    }

    def section(results: Results) -> Section:
        figures, lines = [], []
        for maps, group in groups.items():
            for wait, it in zip(scale.waits, who, strict=True):
                found = group.over(results, it.name, local)
                chances = wait * scale.ec2.nodes / 3.0
                formula = 100 * expected_locality(chances, tasks=maps, nodes=scale.ec2.nodes, replicas=3)
                paper = _WAIT_PAPER.get((maps, int(wait)))
                figures.append(
                    Figure(
                        f"wait.node_local.{maps}maps.{it.name}",
                        found,
                        paper,
                        f"by the formula {formula:.0f} % at least" if wait else "",
                    )
                )
                lines.append(
                    (f"{maps} maps, {it.name}", "" if paper is None else f"{paper} %", cell(found), f"{formula:.1f} %")
                )
        return Section(
            title="How long to wait (5.3, figure 15)",
            about=f"{where(scale.ec2)}; {scale.wait_jobs} jobs, {scale.at_once} at a time; {over(seeds)}.",
            figures=figures,
            listings=[Listing(("maps, W1", "the paper", "ours", "formula"), lines)],
            notes=(
                "The formula is that of 3.5, with every machine's report (one in 3 s) as a chance: there are "
                "fewer tasks than slots.",
            ),
            plots=[
                plot(
                    "wait",
                    "Node locality against the wait (figure 15)",
                    "W1, seconds",
                    "%",
                    list(scale.waits),
                    {
                        f"{maps} maps": [group.over(results, it.name, local) for it in who]
                        for maps, group in groups.items()
                    },
                ),
            ],
        )

    return DelayPart("wait", list(groups.values()), section)

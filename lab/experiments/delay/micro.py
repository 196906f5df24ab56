"""The paper's microbenchmarks: small jobs, sticky slots, and how long to wait (Delay Scheduling, 5.2 and 5.3)."""

from collections.abc import Sequence

from extender.policy.locality import expected_locality
from lab.experiments.delay.groups import (
    TIMES,
    DelayPart,
    Results,
    RunGroup,
    cell,
    cluster_words,
    local,
    makespan,
    mean_seconds,
    plot,
    rack_local,
)
from lab.experiments.delay.runs import FIFO, DelayContender
from lab.experiments.delay.scales import DelayScale
from lab.experiments.delay.scans import Scans
from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.seeds import seed_words

# Small jobs (5.2.2, table 4, figure 12)

_SMALL_PAPER = {3: (2, 50, 75, 96, 1.2), 10: (37, 98, 99, 100, 1.7), 100: (84, 99, 94, 99, 1.3)}


def small(scale: DelayScale, seeds: Sequence[int]) -> DelayPart:
    """Return the part on small jobs (5.2.2, table 4, figure 12)."""
    contenders = [
        DelayContender("naive", waits=(0.0, 0.0)),
        DelayContender("delay", waits=(15.0, 15.0)),
        DelayContender("fifo", FIFO, waits=(0.0, 0.0)),
        DelayContender("fifo, delay", FIFO, waits=(15.0, 15.0)),
        DelayContender("ours", waits=(15.0, 15.0), whole=True),
    ]
    groups = {
        maps: RunGroup(Scans((maps,) * jobs, at_once=scale.at_once), scale.private, contenders, seeds)
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
                    f"{maps} maps, {contender.name}",
                    cell(group.over(results, contender.name, local)),
                    cell(group.over(results, contender.name, rack_local)),
                    cell(group.over(results, contender.name, makespan), "s"),
                    cell(group.over(results, contender.name, mean_seconds), "s"),
                )
                for contender in contenders
            ]
        return Section(
            title="Small jobs (5.2.2, table 4)",
            about=(f"{cluster_words(scale.private)}; {scale.at_once} jobs at a time; {seed_words(seeds)}."),
            figures=figures,
            listings=[
                Listing(("jobs, who", "node-local", "rack-local", "makespan", "job time"), lines),
                Listing(
                    ("the paper", "node / rack without", "node / rack with", "throughput"),
                    [
                        (f"{maps} maps", f"{paper[0]} / {paper[1]}", f"{paper[2]} / {paper[3]}", f"{paper[4]}x")
                        for maps, paper in _SMALL_PAPER.items()
                    ],
                ),
            ],
        )

    return DelayPart("small", list(groups.values()), section)


# Sticky slots (5.2.3, figures 13 and 14)

_STICKY_LOCAL, _STICKY_FASTER = {5: 92, 50: 27}, {10: 1.1, 20: 1.6, 50: 2.0}


def sticky(scale: DelayScale, seeds: Sequence[int]) -> DelayPart:
    """Return the part on sticky slots (5.2.3, figures 13 and 14)."""
    contenders = [
        DelayContender("naive", waits=(0.0,), reports=False),
        DelayContender("delay", waits=(10.0,), reports=False),
        DelayContender("ours", waits=(10.0,), whole=True),
    ]
    groups = {
        jobs: RunGroup(Scans((scale.sticky_maps,) * jobs, shared=True), scale.ec2, contenders, seeds)
        for jobs in scale.sticky
    }

    def section(results: Results) -> Section:
        figures, lines = [], []
        for jobs, group in groups.items():
            without, with_, ours = (group.over(results, contender.name, local) for contender in contenders)
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
            spans = [cell(group.over(results, contender.name, makespan), "s") for contender in contenders]
            lines.append((f"{jobs} jobs", cell(without), f"{bound:.0f} %", cell(with_), cell(ours), *spans))
        heads = (
            "",
            "naive local",
            "bound 3.3.2",
            "delay local",
            "ours local",
            *(f"{contender.name} makespan" for contender in contenders),
        )
        return Section(
            title="Sticky slots (5.2.3, figures 13 and 14)",
            about=(
                f"{cluster_words(scale.ec2)}; all jobs at once scan the same {scale.sticky_maps} blocks; "
                f"{seed_words(seeds)}."
            ),
            figures=figures,
            listings=[Listing(heads, lines)],
            plots=[
                plot(
                    "sticky-locality",
                    title="Node locality (figure 13)",
                    x="concurrent jobs",
                    unit="%",
                    places=list(groups),
                    curves={
                        contender.name: [group.over(results, contender.name, local) for group in groups.values()]
                        for contender in contenders
                    },
                ),
                plot(
                    "sticky-makespan",
                    title="Time to finish all jobs (figure 14)",
                    x="concurrent jobs",
                    unit="s",
                    places=list(groups),
                    curves={
                        contender.name: [group.over(results, contender.name, makespan) for group in groups.values()]
                        for contender in contenders
                    },
                ),
            ],
        )

    return DelayPart("sticky", list(groups.values()), section)


# How long to wait (5.3, figure 15)

_WAIT_PAPER = {(4, 0): 5, (4, 1): 68, (4, 10): 100, (12, 0): 11, (12, 1): 80, (12, 10): 99.8}


def wait(scale: DelayScale, seeds: Sequence[int]) -> DelayPart:
    """Return the part on how long to wait (5.3, figure 15)."""
    contenders = [DelayContender(f"{wait:g}s", waits=(float(wait),)) for wait in scale.waits]
    groups = {
        maps: RunGroup(Scans((maps,) * scale.wait_jobs, at_once=scale.at_once), scale.ec2, contenders, seeds)
        for maps in (4, 12)
    }

    def section(results: Results) -> Section:
        figures, lines = [], []
        for maps, group in groups.items():
            for wait, contender in zip(scale.waits, contenders, strict=True):
                locality = group.over(results, contender.name, local)
                chances = wait * scale.ec2.nodes / 3.0
                formula = 100 * expected_locality(chances, tasks=maps, nodes=scale.ec2.nodes, replicas=3)
                paper = _WAIT_PAPER.get((maps, int(wait)))
                figures.append(
                    Figure(
                        f"wait.node_local.{maps}maps.{contender.name}",
                        locality,
                        paper,
                        f"by the formula {formula:.0f} % at least" if wait else "",
                    )
                )
                lines.append(
                    (
                        f"{maps} maps, {contender.name}",
                        "" if paper is None else f"{paper} %",
                        cell(locality),
                        f"{formula:.1f} %",
                    )
                )
        return Section(
            title="How long to wait (5.3, figure 15)",
            about=(
                f"{cluster_words(scale.ec2)}; {scale.wait_jobs} jobs, {scale.at_once} at a time; {seed_words(seeds)}."
            ),
            figures=figures,
            listings=[Listing(("maps, W1", "the paper", "ours", "formula"), lines)],
            notes=(
                "The formula is that of 3.5, with every machine's report (one in 3 s) as a chance: there are "
                "fewer tasks than slots.",
            ),
            plots=[
                plot(
                    "wait",
                    title="Node locality against the wait (figure 15)",
                    x="W1, seconds",
                    unit="%",
                    places=list(scale.waits),
                    curves={
                        f"{maps} maps": [group.over(results, contender.name, local) for contender in contenders]
                        for maps, group in groups.items()
                    },
                ),
            ],
        )

    return DelayPart("wait", list(groups.values()), section)

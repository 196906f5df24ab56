"""DAGs for the tests: the paper's figures, and small ones that are drawn."""

import numpy as np
from hypothesis import strategies as st

from extender.graph import Dag, Machines, Parent, Stage

TINY = 1e-6


def stage(name, tasks, seconds, demand, *parents, one_to_one=()):
    """Return a stage of equal tasks."""
    edges = tuple(Parent(parent, parent in one_to_one) for parent in (*parents, *one_to_one))
    return Stage(name, np.full(tasks, float(seconds)), np.array(demand, float), edges)


def one_machine(resources=1):
    return Machines(1, np.ones(resources))


def like_figure_2(short=0.01):
    """Return a DAG in which the three long tasks can overlap, if what comes before them runs first."""
    return Dag(
        [
            stage("t0", 1, 1, [0.4, 0.5]),
            stage("t1", 1, short, [0.1, 0.75]),
            stage("t2", 1, 1, [0.4, 0.4], "t1"),
            stage("t3", 1, 3 * short, [0.74, 0.1]),
            stage("t4", 1, short, [0.1, 0.6], "t3"),
            stage("t5", 1, 1, [0.2, 0.1], "t4"),
        ]
    )


def figure_8(groups, tasks):
    """Return groups of tasks, each of a resource of its own; one task of each group comes before the next group."""
    stages = []
    for group in range(groups):
        demand = np.eye(groups)[group]
        parents = [f"red-{group - 1}"] if group else []
        stages += [
            stage(f"blue-{group}", tasks - 1, 1, demand, *parents),
            stage(f"red-{group}", 1, 1, demand, *parents),
        ]
    return Dag(stages)


def like_figure_9(pairs):
    """Return wide, short tasks in a chain, each before a long and narrow one; each pair's path is a little shorter."""
    stages = []
    for pair in range(pairs):
        parents = [f"wide-{pair - 1}"] if pair else []
        stages.append(stage(f"wide-{pair}", 1, 0.001, [0.999], *parents))
        stages.append(stage(f"long-{pair}", 1, 1 - 0.01 * pair, [1 / pairs], f"wide-{pair}"))
    return Dag(stages)


def figure_10(resources, short=0.001):
    """Return long tasks that all fit together, each behind a wide, short one; whoever packs runs one after the other.

    The picture is not in the text. The text says: all long tasks can run together; one that is runnable is aligned
    better than any wide one; some wide parent of each cannot run beside a long one that was taken earlier; a packer
    takes 2d - 2 times as long. Assumed: two long tasks for each resource but the last, half of it each, and an even
    part of the last; the wide ones in a chain, each a little more than half of what the long one before it takes.
    """
    longs = 2 * resources - 2
    stages = []
    for number in range(longs):
        wide, long = np.zeros(resources), np.zeros(resources)
        wide[max(number - 1, 0) // 2] = 0.5 + 0.1 / longs
        long[number // 2], long[-1] = 0.5, 1 / longs
        stages.append(stage(f"wide-{number}", 1, short, wide, *([f"wide-{number - 1}"] if number else [])))
        stages.append(stage(f"long-{number}", 1, 1, long, f"wide-{number}"))
    return Dag(stages)


def like_figure_3():
    """Return two jobs like that of figure 2 as one DAG.

    The picture shows who runs when; the text gives the order that both jobs have, and that the best takes 2 T in all.
    """
    one = like_figure_2()
    return Dag(
        [
            Stage(
                f"{job}-{each.name}",
                each.seconds,
                each.demand,
                tuple(Parent(f"{job}-{parent.name}") for parent in each.parents),
            )
            for job in ("a", "b")
            for each in one.stages
        ]
    )


def four_subsets():
    """Return a DAG in which each subset of section 4 is there: for T = {b} P is a, C is d, S is c and e."""
    return Dag(
        [
            stage("a", 1, 1, [0.5]),
            stage("b", 1, 9, [0.5], "a"),
            stage("c", 1, 2, [0.5], "a"),
            stage("d", 1, 3, [0.5], "b", "c"),
            stage("e", 1, 4, [0.5]),
        ]
    )


def figure_18():
    return Dag(
        [
            *(stage(f"S{number}", 1, 1, [TINY]) for number in (1, 2, 3)),
            stage("S4", 50, 2, [0.1], "S1", "S2"),
            stage("S5", 1, 1, [TINY], "S3"),
            stage("S6", 1, 10, [0.02], "S4", "S5"),
            stage("S7", 20, 0.1, [0.9], "S6"),
            stage("S8", 1, 1, [TINY], "S6"),
        ]
    )


@st.composite
def drawn(draw, most_stages=5, most_tasks=3, seconds=(1.0, 2.0, 3.0, 5.0)):
    """Return a DAG with durations that vary and edges one to one, and machines."""
    stages = []
    for row in range(draw(st.integers(1, most_stages))):
        count = draw(st.integers(1, most_tasks))
        parents = []
        for before in range(row):
            if draw(st.integers(0, 2)) == 0:
                alike = len(stages[before].seconds) == count
                parents.append(Parent(f"s{before}", alike and draw(st.booleans())))
        lasts = np.array([draw(st.sampled_from(seconds)) for _ in range(count)])
        demand = np.array([draw(st.sampled_from((0.0, 0.3, 0.5, 0.6, 1.0))) for _ in range(2)])
        stages.append(Stage(f"s{row}", lasts, demand, tuple(parents)))
    return Dag(stages), Machines(draw(st.integers(1, 2)), np.ones(2))

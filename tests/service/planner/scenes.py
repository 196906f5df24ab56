"""Clusters and waiting classes for the planner's tests: small ones by hand, and random ones."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from extender.cluster.ledger.layout import layout_of
from extender.cluster.ledger.snapshot import Nominations, Snapshot
from extender.cluster.model import Node
from extender.cluster.resources import DIMENSIONS
from extender.cluster.waiting import Blocks, Jobs, Shuffle, Waiting
from extender.planner import Carried, Policy, plan_once
from extender.planner.filling import match

NOBODY = Nominations((), np.empty(0, np.intp), np.empty(0, np.int64), np.empty((0, 6)))


def cluster(*capacities, allocated=None, names=None):
    names = names or [f"n{i}" for i in range(len(capacities))]
    nodes = {
        name: Node(name, {d: float(c) for d, c in zip(DIMENSIONS, row, strict=False)})
        for name, row in zip(names, capacities, strict=True)
    }
    layout = layout_of(nodes)
    layout = replace(layout, axis=DIMENSIONS, capacity=layout.capacity[:, : len(DIMENSIONS)])
    load = np.zeros(layout.capacity.shape) if allocated is None else np.array(allocated, float)
    return Snapshot(0, 0, layout, load, np.zeros_like(load), NOBODY)


def tasks(*classes, work=None, since=0.0, running=None, held=None):
    """Each class: (job, count, demand of up to 6, reading, inputs, finished)."""
    jobs = 1 + max(c[0] for c in classes)
    rows = [(*c, *(None,) * (6 - len(c))) for c in classes]
    demand = np.array([[*c[2], *(0.0,) * (6 - len(c[2]))] for c in rows], float)
    return Waiting(
        names=[f"class{i}" for i in range(len(rows))],
        job=np.array([c[0] for c in rows]),
        count=np.array([c[1] for c in rows]),
        demand=demand,
        reading=np.array([float(c[3] or 0.0) for c in rows]),
        inputs=[c[4] for c in rows],
        duration=np.full(len(rows), 10.0),
        since=np.full(len(rows), since),
        finished=np.array([float(c[5] or 0.0) for c in rows]),
        jobs=Jobs(
            names=[f"job{j}" for j in range(jobs)],
            queue=np.zeros(jobs, np.intp),
            weight=np.ones(jobs),
            allocated=np.zeros((jobs, 6)) if held is None else np.array(held, float),
            work=np.ones(jobs) if work is None else np.array(work, float),
            queue_names=["default"],
            queue_weight=np.ones(1),
        ),
        running=running,
    )


def once(snapshot, waiting, policy=None, now=0.0, carried=None, explain=False):
    return plan_once(policy or Policy(), snapshot, waiting, now, carried or Carried(), explain=explain)


def reserved_nodes(plan):
    """Return the nodes on which room is reserved, by the class that it is for."""
    return {name: list(reservation.nodes) for name, reservation in plan.carried.reserved.items()}


def pairs(plan):
    return list(zip(plan.assignments.task_class.tolist(), plan.assignments.node.tolist(), strict=True))


def load_of(snapshot, waiting, plan):
    """Add up what the plan takes of every node, one assignment at a time."""
    load = snapshot.allocated.copy()
    a = plan.assignments
    for c, m, s in zip(a.task_class.tolist(), a.node.tolist(), a.source.tolist(), strict=True):
        load[m] += waiting.demand[c]
        inputs, rate = waiting.inputs[c], waiting.reading[c]
        if isinstance(inputs, Shuffle):
            for n, r in zip(inputs.nodes.tolist(), inputs.rates.tolist(), strict=True):
                load[n, 2] += r
                if n != m:
                    load[n, 5] += r
                    load[m, 4] += r
        else:
            source = m if inputs is None else s
            load[source, 2] += rate
            if source != m:
                load[source, 5] += rate
                load[m, 4] += rate
    return load


@st.composite
def scenes(draw):
    nodes = draw(st.integers(1, 5))
    amount = st.sampled_from([0.0, 1.0, 2.0, 4.0, 8.0, float("inf")])
    capacities = [draw(st.tuples(*[amount] * 6)) for _ in range(nodes)]
    classes = []
    for _ in range(draw(st.integers(1, 5))):
        demand = draw(st.tuples(*[st.sampled_from([0.0, 1.0, 2.0, 3.0])] * draw(st.sampled_from([2, 6]))))
        count, reading = draw(st.integers(0, 4)), draw(st.sampled_from([0.0, 1.0, 2.0]))
        kind = draw(st.sampled_from(["own", "blocks", "spread"]))
        inputs = None
        if kind == "blocks":
            copies = [[draw(st.integers(0, nodes - 1))] for _ in range(count)]
            inputs = Blocks(np.array(copies, np.intp).reshape(count, 1), np.ones(count, bool), nodes)
        if kind == "spread":
            inputs = Shuffle(np.arange(nodes), np.full(nodes, reading))
            reading *= nodes
        classes.append((draw(st.integers(0, 2)), count, demand, reading, inputs, draw(st.sampled_from([0.0, 0.95]))))
    policy = Policy(
        matching=draw(st.sampled_from(["machine", "pair", "bundle"])),
        rule=draw(st.sampled_from(["dot", "cosine", "l2-norm-diff", "ffd-prod"])),
        sharing=draw(st.sampled_from(["drf", "slots"])),
        kappa=draw(st.sampled_from([1.0, 1.0, 0.0, 0.1])),
        fairness=draw(st.sampled_from([0.0, 0.25, 0.9])),
        starved_after=draw(st.sampled_from([0.0, 600.0])),
    )
    return capacities, classes, policy


@st.composite
def real_scenes(draw):
    """Scenes with some of what only real clusters have: (snapshot, waiting, policy)."""
    capacities, classes, policy = draw(scenes())
    nodes, number = len(capacities), len(classes)

    def each(values, count=number):
        return np.array(draw(st.lists(st.sampled_from(values), min_size=count, max_size=count)))

    extras = {
        "priority": each([-5, 0, 10]),
        "behind": each([0, 1, 2]),
        "barred": each([False, False, True], number * nodes).reshape(number, nodes),
        "gang": each([-1, -1, 0, 1]),
        "shuffled": each([False, True]),
    }
    used = {name: array for name, array in extras.items() if draw(st.booleans())}
    if "gang" in used:
        used["gang_least"] = each([1, 2, 3, 5], 2)
    since = each([0.0, 400.0, 900.0])
    return cluster(*capacities), replace(tasks(*classes), since=since, **used), policy


def left_out(waiting, plan):
    """Return the classes [C] whose gangs the plan leaves out."""
    if waiting.gang is None:
        return np.zeros(len(waiting.count), bool)
    started = np.bincount(plan.assignments.task_class, minlength=len(waiting.count))
    got = np.array([started[waiting.gang == gang].sum() for gang in range(len(waiting.gang_least))])
    return (waiting.gang >= 0) & (got < waiting.gang_least)[waiting.gang]


def left_in(waiting, plan):
    """Return how many tasks of each class still wait after the plan [C]."""
    return waiting.count - np.bincount(plan.assignments.task_class, minlength=len(waiting.count))


def filled(board, waiting):
    """Fill the board with all classes, and return what has been taken and what was left of everything."""
    everyone = np.ones(len(waiting.count), bool)
    board.admit(everyone)
    board.fairness.set_due(np.where(waiting.since < 500, waiting.since, np.inf), np.zeros_like(board.fairness.by_due))
    match(board, board)
    taken, terms, fairness, sources = board.taken.assignments(), board.taken.terms(), board.fairness, board.sources
    rows = np.arange(len(waiting.count))
    return [
        *(np.array(column) for column in (taken.task_class, taken.node, taken.task, taken.source)),
        *(np.array(column) for column in zip(*((it.score, it.owed, it.starved) for it in terms), strict=True)),
        *(
            np.array(amounts)
            for amounts in (board.free, board.left, board.reserved, sources.local_on_all(rows), sources.kept)
        ),
        *(np.array(share) for share in (fairness.owed, fairness.in_line, fairness.due)),
    ]

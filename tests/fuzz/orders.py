"""The order: what a plan promises, in scenes of queues, priorities, gangs, blocks and barred nodes.

Scenes are made by `tests.service.planner.scenes`; a plan is asked for what it starts, never for how it got there.
"""

from dataclasses import replace

import numpy as np

from extender.cluster.waiting import Blocks
from extender.planner import Carried, Planner, Policy, plan_once
from tests.fuzz.broken import Broken, require
from tests.service.planner.scenes import cluster, load_of, pairs, tasks

_TASK_SECONDS = 10.0
_STEPS = 400


def sound(random, size):
    """A plan over-allocates nothing, starts nothing twice or where it may not go, and gangs whole or not at all."""
    snapshot, waiting = _scene(random, size, used=True)
    plan = plan_once(_policy(random), snapshot, waiting, 100.0, Carried())
    _require_sound(snapshot, waiting, plan)


def never_empty(random, size):
    """On an empty cluster somebody starts if anybody could."""
    snapshot, waiting = _scene(random, size)
    plan = plan_once(_policy(random), snapshot, waiting, random.choice((0.0, 100.0, 1000.0)), Carried())
    if _somebody_could_start(snapshot, waiting):
        require(len(plan.assignments), "nobody starts on an empty cluster", lambda: _told(snapshot, waiting))


def priorities(random, size):
    """Nobody waits for the room that lower priorities get."""
    snapshot, waiting = _scene(random, size, used=True, gangs=False, inputs=False)
    priority = np.array([random.choice((0, 0, 5, 9)) for _ in waiting.names])
    waiting = replace(waiting, priority=priority)
    plan = plan_once(_policy(random), snapshot, waiting, 100.0, Carried())
    started = np.bincount(plan.assignments.task_class, minlength=len(priority))
    for row in np.flatnonzero(waiting.count > started).tolist():
        kept = replace(plan, assignments=_only(plan.assignments, priority >= priority[row]))
        free = snapshot.layout.capacity - load_of(snapshot, waiting, kept)
        lower = np.unique(plan.assignments.node[priority[plan.assignments.task_class] < priority[row]])
        fits = _fits(waiting.demand[row], free[lower]) & ~waiting.barred[row][lower]
        require(
            not fits.any(), "a lower priority got room that a higher one waits for", lambda: _told(snapshot, waiting)
        )


def until_all_have_run(random, size):
    """Plan after plan, everybody who fits the empty cluster runs; nobody is kept from it by who cannot."""
    snapshot, waiting = _scene(random, size, inputs=False)
    planner, could = Planner(_policy(random)), _able(snapshot, waiting)
    ends, now = [], 0.0
    for _ in range(_STEPS):
        for _, row, node in [it for it in ends if it[0] <= now]:
            snapshot = _changed(snapshot, node, -waiting.demand[row])
        ends = [it for it in ends if it[0] > now]
        plan = planner.plan(snapshot, waiting, now)
        _require_sound(snapshot, waiting, plan)
        if not (ends or len(plan.assignments)):
            left = [waiting.names[row] for row in np.flatnonzero(could & (waiting.count > 0))]
            if left and now >= 600.0:
                raise Broken("somebody waits for ever on an empty cluster", _told(snapshot, waiting))
            if not left:
                return
        for row, node in pairs(plan):
            snapshot = _changed(snapshot, node, waiting.demand[row])
            ends.append((now + random.choice((0.5, 1.0, 3.0)) * _TASK_SECONDS, row, node))
        waiting = _started(waiting, plan, now)
        now += 5.0
    left = {waiting.names[row]: int(waiting.count[row]) for row in np.flatnonzero(could & (waiting.count > 0))}
    require(not left, "somebody waits for ever", lambda: f"{left} of {_told(snapshot, waiting)}")


def names(random, size):
    """What classes are called, and so which row is whose, changes nothing but ties.

    Each job has something: where queues have nothing, and one class each, all these have a score of 0.
    """
    snapshot, waiting = _scene(random, size, gangs=False, inputs=False, ties=False)
    has = np.array([[random.uniform(0.0, 1.0) for _ in row] for row in waiting.jobs.allocated])
    waiting = replace(waiting, jobs=replace(waiting.jobs, allocated=has))
    policy = Policy(matching=random.choice(("machine", "pair", "bundle")))
    straight = plan_once(policy, snapshot, waiting, 100.0, Carried())
    order = random.sample(range(len(waiting.names)), len(waiting.names))
    columns = ("job", "count", "demand", "reading", "duration", "since", "finished", "barred", "priority")
    moved = {name: None if (column := getattr(waiting, name)) is None else column[order] for name in columns}
    renamed = plan_once(policy, snapshot, replace(waiting, **moved), 100.0, Carried())
    ours = sorted(pairs(straight))
    theirs = sorted((order[row], node) for row, node in pairs(renamed))
    require(ours == theirs, "other names make another plan", lambda: f"{ours}, {theirs}: {_told(snapshot, waiting)}")


def units(random, size):
    """In whatever units amounts are counted, the plan is the same."""
    snapshot, waiting = _scene(random, size, used=True)
    policy = _policy(random)
    straight = plan_once(policy, snapshot, waiting, 100.0, Carried())
    scale = np.array([2.0 ** random.randint(-3, 12) for _ in range(2)] + [1.0] * 4)
    layout = replace(snapshot.layout, capacity=snapshot.layout.capacity * scale)
    amounts = {name: getattr(snapshot, name) * scale for name in ("allocated", "in_flight", "empty")}
    scaled = replace(snapshot, layout=layout, **amounts)
    jobs = replace(waiting.jobs, allocated=waiting.jobs.allocated * scale)
    other = plan_once(policy, scaled, replace(waiting, demand=waiting.demand * scale, jobs=jobs), 100.0, Carried())
    require(pairs(straight) == pairs(other), "other units make another plan", lambda: _told(snapshot, waiting))


def _policy(random):
    return Policy(
        matching=random.choice(("machine", "machine", "pair", "bundle")),
        sharing=random.choice(("drf", "drf", "slots")),
        kappa=random.choice((1.0, 1.0, 0.0, 0.1)),
        fairness=random.choice((0.25, 0.25, 0.0, 0.9)),
    )


def _scene(random, size, *, used=False, gangs=True, inputs=True, ties=True):
    """Return a snapshot and what waits: small enough to read, with whatever real clusters have."""
    nodes, queues = random.randint(1, 1 + size // 2), random.randint(1, 3)
    amount = (lambda: float(random.randint(1, 8))) if ties else (lambda: random.uniform(1.0, 8.0))
    capacities = [(amount(), amount(), *random.choice(((), (4.0,) * 4))) for _ in range(nodes)]
    capacities = [(*row, *(float("inf"),) * (6 - len(row))) for row in capacities]
    load = np.zeros((nodes, 6))
    if used:
        load[:, :2] = [[min(random.choice((0.0, 1.0, 3.0)), have) for have in row[:2]] for row in capacities]
    classes = []
    for _ in range(random.randint(1, 1 + size)):
        demand = tuple(amount() / 2 for _ in range(2))
        demand = tuple(random.choice((0, round(part), round(part))) for part in demand) if ties else demand
        count, blocks, reading = random.randint(0, 4), None, 0.0
        if inputs and random.random() < 0.3:
            copies = [[random.randrange(nodes)] for _ in range(count)]
            blocks = Blocks(np.array(copies, np.intp).reshape(count, 1), np.ones(count, bool), nodes)
            reading = random.choice((0.0, 1.0, 3.0))
        classes.append((random.randrange(3), count, demand, reading, blocks, random.choice((0.0, 0.0, 0.95))))
    rows, jobs = len(classes), 1 + max(it[0] for it in classes)
    waiting = tasks(*classes, work=[random.uniform(0.1, 9.0) for _ in range(jobs)])
    shared = replace(
        waiting.jobs,
        queue=np.array([random.randrange(queues) for _ in range(jobs)]),
        queue_names=[f"q{it}" for it in range(queues)],
        queue_weight=np.full(queues, 1.0 / queues),
    )
    barred = np.array([[random.random() < 0.2 for _ in range(nodes)] for _ in range(rows)]).reshape(rows, nodes)
    since = np.array([random.choice((0.0, 0.0, 90.0)) for _ in range(rows)])
    waiting = replace(waiting, jobs=shared, barred=barred, since=since)
    if random.random() < 0.4:
        waiting = replace(waiting, priority=np.array([random.choice((0, 0, 5)) for _ in range(rows)]))
    if gangs and random.random() < 0.4:
        of = np.array([random.choice((-1, -1, 0, 1)) for _ in range(rows)])
        waiting = replace(waiting, gang=of, gang_least=np.array([random.choice((1, 2, 3)) for _ in range(2)]))
    return cluster(*capacities, allocated=load), waiting


def _require_sound(snapshot, waiting, plan):
    def told():
        return f"{pairs(plan)} of {_told(snapshot, waiting)}"

    found = plan.assignments
    started = np.bincount(found.task_class, minlength=len(waiting.names))
    require((started <= waiting.count).all(), "more is started than waits", told)
    over = load_of(snapshot, waiting, plan) > snapshot.layout.capacity + 1e-9
    require(not over.any(), "a plan over-allocates", told)
    named = [pair for pair in zip(found.task_class.tolist(), found.task.tolist(), strict=True) if pair[1] >= 0]
    require(len(set(named)) == len(named), "a task is started twice", told)
    if waiting.barred is not None:
        require(not waiting.barred[found.task_class, found.node].any(), "a task goes where it may not", told)
    if waiting.gang is not None:
        for gang, least in enumerate(waiting.gang_least.tolist()):
            got = int(started[waiting.gang == gang].sum())
            require(got == 0 or got >= least, "a gang starts in part", told)


def _somebody_could_start(snapshot, waiting):
    """Say whether some class that is in no gang and reads no blocks fits an empty node."""
    return bool((_able(snapshot, waiting, gangs=False) & (waiting.count > 0)).any())


def _able(snapshot, waiting, *, gangs=True):
    """Say of which classes [C] tasks would run if nobody else waited; a gang has to fit whole, by one class of it."""
    capacity, able = snapshot.layout.capacity, np.zeros(len(waiting.names), dtype=bool)
    for row, demand in enumerate(waiting.demand):
        may = ~waiting.barred[row]
        gang = -1 if waiting.gang is None else int(waiting.gang[row])
        if gang < 0:
            able[row] = waiting.inputs[row] is None and bool((_fits(demand, capacity) & may).any())
        elif gangs and (waiting.gang == gang).sum() == 1 and waiting.count[row] >= waiting.gang_least[gang]:
            with np.errstate(divide="ignore", invalid="ignore"):
                each = np.where(demand > 0, np.floor(capacity / demand), np.inf).min(axis=1)
            able[row] = waiting.inputs[row] is None and each[may].sum() >= waiting.gang_least[gang]
    return able


def _fits(demand, free):
    return ((free >= demand) | (demand <= 0)).all(axis=1)


def _started(waiting, plan, now):
    rows = plan.assignments.task_class
    since = waiting.since.copy()
    since[rows] = now
    count = waiting.count - np.bincount(rows, minlength=len(waiting.names))
    least = waiting.gang_least
    if waiting.gang is not None:
        got = np.array([np.isin(rows, np.flatnonzero(waiting.gang == gang)).sum() for gang in range(len(least))])
        least = np.maximum(least - got, 0)
    return replace(waiting, since=since, count=count, gang_least=least)


def _changed(snapshot, node, amounts):
    allocated = snapshot.allocated.copy()
    allocated[node] = np.maximum(allocated[node] + amounts, 0.0)
    return replace(snapshot, allocated=allocated)


def _only(assignments, classes):
    kept = classes[assignments.task_class]
    columns = ("task_class", "node", "task", "source")
    return replace(assignments, **{name: getattr(assignments, name)[kept] for name in columns})


def _told(snapshot, waiting):
    return (
        f"capacity {snapshot.layout.capacity[:, :2].tolist()}, allocated {snapshot.allocated[:, :2].tolist()}, "
        f"count {waiting.count.tolist()}, demand {waiting.demand[:, :2].tolist()}, job {waiting.job.tolist()}, "
        f"queue {waiting.jobs.queue.tolist()}, since {waiting.since.tolist()}, gang {_listed(waiting.gang)} "
        f"of {_listed(waiting.gang_least)}, priority {_listed(waiting.priority)}, barred {_listed(waiting.barred)}"
    )


def _listed(array):
    return None if array is None else array.astype(int).tolist()

"""The order of a job's tasks, for DAGs of any shape: valid, above the bounds, never worse than a simple one."""

import time

import numpy as np

from extender.errors import GraphError
from extender.graph import Dag, Machines, Parent, Stage, build
from extender.graph.orders import BREADTH_FIRST, breadth_first, longest_path
from extender.graph.replay import replay
from tests.fuzz.broken import require

_RESOURCES = 3
_ROUNDING = 1 + 1e-6
_BUDGET_SECONDS, _FAR_TOO_LONG_SECONDS = 0.010, 0.100
"""Of the processor. A search asks for the time between its steps, so it ends a step late."""


def dags(random, size):
    """An order starts nothing before its parents, takes no less than the bounds and no more than simple orders do."""
    dag, machines = _dag(random, size), Machines(random.randint(1, 4), np.ones(_RESOURCES))
    effort = random.choice((1, 50, 300))
    order = build(dag, machines, seed=random.randint(0, 9), effort=effort)
    told = lambda: _told(dag, machines)  # noqa: E731 - only made where it is needed
    require(order.span * _ROUNDING >= order.bounds.tightest, "an order is faster than a bound", told)
    bounds = order.bounds
    require(bounds.new_lb * _ROUNDING >= max(bounds.cp_len, bounds.t_work), "NewLB is below a simpler bound", told)
    begins = replay(dag, machines, order.ranks).begins
    for row, stage in enumerate(dag.stages):
        for edge in dag.parents[row]:
            ends = begins[edge.row] + dag.stages[edge.row].seconds
            require((begins[row] * _ROUNDING >= (ends if edge.one_to_one else ends.max())).all(), "a parent runs", told)
        require(len(order.ranks[row]) == len(stage.seconds), "a task has no rank", told)
    longest = replay(dag, machines, longest_path(dag)).span
    require(order.span <= longest * _ROUNDING, "an order is worse than the longest path", told)
    if BREADTH_FIRST in order.spans:
        first = replay(dag, machines, breadth_first(dag)).span
        require(order.span <= first * _ROUNDING, "an order is worse than breadth-first", told)


def dags_in_time(random, size):
    """A search that may take 10 ms of the processor stops when they are over, with an order that is valid."""
    dag, machines = _dag(random, size), Machines(random.randint(1, 4), np.ones(_RESOURCES))
    begin = time.process_time()
    order = build(dag, machines, effort=10**9, ended=lambda: time.process_time() - begin >= _BUDGET_SECONDS)
    took = time.process_time() - begin
    told = lambda: f"{1000 * took:.0f} ms: {_told(dag, machines)}"  # noqa: E731 - only made where it is needed
    require(took <= _FAR_TOO_LONG_SECONDS, "a search goes on when its time is over", told)
    span = replay(dag, machines, order.ranks).span
    if order.spans:
        require(abs(span - order.span) <= (_ROUNDING - 1) * span, "an order takes other than it says", told)


def wrong_dags(random, size):
    """What is no DAG is refused with a reason that names a stage, whatever is wrong with it."""
    stages = list(_dag(random, size).stages)
    place = random.randrange(len(stages))
    stage = stages[place]
    wrong = random.choice(("cycle", "unknown", "twice", "nan", "negative", "none", "name"))
    stages[place] = {
        "cycle": Stage(stage.name, stage.seconds, stage.demand, (Parent(stage.name),)),
        "unknown": Stage(stage.name, stage.seconds, stage.demand, (Parent("nobody"),)),
        "twice": Stage(stage.name, stage.seconds, stage.demand, (Parent("nobody"), Parent("nobody"))),
        "nan": Stage(stage.name, np.full(2, np.nan), stage.demand),
        "negative": Stage(stage.name, stage.seconds, -np.ones(_RESOURCES)),
        "none": Stage(stage.name, np.empty(0), stage.demand),
        "name": stage,
    }[wrong]  # fmt: skip
    if wrong == "name":
        stages.append(stage)
    try:
        Dag(stages)
    except GraphError as error:
        require(stage.name in str(error), "an error does not name the stage", str(error))
    else:
        require(False, "what is no DAG is taken", wrong)


def _dag(random, size):
    """Return a DAG whose stages vary in tasks, seconds and demand; some edges are one to one."""
    stages = []
    for row in range(random.randint(1, 2 + size)):
        tasks = random.choice((1, 1, 2, 3, 2 * size))
        parents = []
        for before in random.sample(range(row), min(row, random.choice((0, 1, 1, 2)))):
            alike = len(stages[before].seconds) == tasks
            parents.append(Parent(f"s{before}", alike and random.random() < 0.5))
        alike = random.random() < 0.7
        drawn = [random.uniform(0.1, 9) for _ in range(tasks)]
        seconds = np.full(tasks, drawn[0]) if alike else np.array(drawn)
        demand = np.array([random.choice((0.0, 0.01, 0.3, 0.5, 0.7, 1.0)) for _ in range(_RESOURCES)])
        stages.append(Stage(f"s{row}", seconds, demand, tuple(parents)))
    return Dag(stages)


def _told(dag, machines):
    return f"{machines.count} machines; " + "; ".join(
        f"{stage.name}: {stage.seconds.tolist()} {stage.demand.tolist()} {stage.parents}" for stage in dag.stages
    )

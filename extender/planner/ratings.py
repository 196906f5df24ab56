"""What a plan would weigh for one class on each node, as things are before it places anything: for people who ask."""

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Waiting
from extender.planner.board import Board
from extender.planner.dag_progress import DagProgress
from extender.planner.plan import Carried, Rating
from extender.planner.prepared import prepared, scale_of
from extender.planner.tuning import Policy
from extender.policy.alignment import TASK_RULES

_MOST_NODES = 1_000


def ratings(policy: Policy, snapshot: Snapshot, waiting: Waiting, carried: Carried, task_class: int) -> list[Rating]:
    """Return how nodes rate for a class, best first: those where one of it fits, of very many those with most room."""
    board = Board(policy, snapshot, waiting, carried, prepared(waiting, snapshot.layout))
    board.offer_all()
    rated = [board.rate(task_class, node) for node in list(board.nodes())[:_MOST_NODES]]
    return sorted((rating for rating in rated if rating is not None), key=lambda rating: (-rating.score, rating.node))


def owed_to_jobs(policy: Policy, snapshot: Snapshot, waiting: Waiting, carried: Carried) -> Floats:
    """Return how far each job is below its fair share, as a part of it [J]: 1 has nothing, below 0 more than it."""
    return Board(policy, snapshot, waiting, carried, prepared(waiting, snapshot.layout)).fairness.owed


def dag_rank(policy: Policy, waiting: Waiting, task_class: int) -> float | None:
    """Return where a class's next task stands in its DAG's order, 1 for the DAG's first; None without one."""
    return DagProgress(waiting, rank=policy.rank).rank(task_class)


def alignments(policy: Policy, snapshot: Snapshot, demand: Floats, free: Floats) -> Floats:
    """Return how well a demand, [R] or [N, R], suits what nodes have free [N, R], whether or not it fits [N]."""
    capacity = snapshot.layout.packed
    limited = np.isfinite(capacity) & (capacity > 0)
    scale = scale_of(capacity.T, limited.T).T
    room = np.where(limited, np.maximum(free, 0.0), 0.0) * scale
    rule = TASK_RULES[policy.rule]
    takes = demand * scale
    return np.array([rule(takes[row : row + 1], room[row])[0] for row in range(len(room))])

"""Moves: other orders of the same tasks, and the stages that decide when all ends."""

import numpy as np
from hypothesis import given, settings

from extender.graph import Dag
from extender.graph.moves import Moves, critical
from extender.graph.orders import at_random, breadth_first
from extender.graph.replay import replay
from tests.service.graph.dags import drawn, one_machine, stage


def test_stages_are_critical_that_follow_each_other_to_the_end():
    # b waits for a (0 to 1), d for room until b has ended (1 to 4); c ends long before.
    dag = Dag([stage("a", 1, 1, [0.6]), stage("b", 1, 3, [0.6], "a"), stage("c", 1, 1, [0.1]), stage("d", 1, 2, [0.6])])
    run = replay(dag, one_machine(), [np.array([float(rank)]) for rank in (0, 1, 2, 3)])
    assert [begins.item(0) for begins in run.begins] == [0, 1, 0, 4]
    assert critical(dag, run.begins) == [0, 1, 3]


class _Steps(list):
    """A list in which few are looked up: whoever does not come to an end fails."""

    looks = 0

    def __getitem__(self, place):
        self.looks += 1
        assert self.looks <= 2 * len(self)
        return super().__getitem__(place)


def test_the_way_back_ends_where_a_task_is_shorter_than_what_counts_as_the_same_moment():
    # At second 1000 a ends and b begins, which takes a millisecond: less than the rounding at such a moment.
    dag = Dag([stage("b", 1, 0.001, [0.6]), stage("a", 1, 1000, [0.6]), stage("c", 1, 1000, [0.6])])
    dag.parents = _Steps(dag.parents)
    assert critical(dag, [np.array([1000.0]), np.array([0.0]), np.array([1000.001])]) == [0, 1, 2]


@settings(max_examples=40, deadline=None)
@given(drawn(most_stages=6, most_tasks=4))
def test_a_move_changes_the_places_of_two_stages_at_most(scene):
    dag, machines = scene
    if len(dag) < 2:
        return
    random = np.random.default_rng(1)
    begins = replay(dag, machines, breadth_first(dag)).begins
    moves, ranks = Moves(dag, random, begins), at_random(dag, random)
    for _ in range(20):
        moved = moves.of(ranks)
        assert [len(those) for those in moved] == dag.count.tolist()
        assert all(np.isfinite(those).all() for those in moved)
        assert sum(those is not before for those, before in zip(moved, ranks, strict=True)) <= 2
        ranks = moved

"""Orders: replayed, never worse than the simple ones, and the best that there is where the paper knows it."""

import numpy as np
import pytest
from hypothesis import given, settings

from extender.graph import Dag, Machines, Parent, Stage, build
from extender.graph.building import PAPER, usual_effort
from extender.graph.orders import at_random, breadth_first, coffman_graham, longest_path, shrinking_work, strip_part
from extender.graph.replay import Replay, _Line, _Run, replay
from tests.service.graph.dags import (
    drawn,
    figure_8,
    figure_10,
    figure_18,
    like_figure_2,
    like_figure_3,
    like_figure_9,
    one_machine,
    stage,
)


def test_figure_18_takes_24():
    assert build(figure_18(), one_machine()).span == pytest.approx(24, abs=1e-3)


def test_an_order_that_overlaps_the_long_tasks_takes_a_third():
    # Whoever begins with what is there (t0) takes 2 T; whoever packs, 2 or 3 T. The best is T and what comes before.
    dag, machines = like_figure_2(), one_machine(2)
    assert replay(dag, machines, None).span > 1.9
    assert replay(dag, machines, breadth_first(dag)).span > 1.9
    order = build(dag, machines)
    assert order.span == pytest.approx(order.bounds.tightest)
    assert order.span < 1.06


def test_who_does_not_know_the_dag_takes_d_times_as_long():
    dag, machines = figure_8(4, 10), one_machine(4)
    assert replay(dag, machines, None).span == pytest.approx(40)
    assert build(dag, machines).span == pytest.approx(13)


def test_who_goes_by_the_critical_path_alone_takes_n_times_as_long():
    dag, machines = like_figure_9(10), one_machine()
    assert replay(dag, machines, longest_path(dag)).span > 9
    order = build(dag, machines)
    assert order.span < 1.02
    assert order.spans[PAPER] < 1.02


def test_who_packs_what_can_start_takes_2d_minus_2_times_as_long():
    # Figure 10, with d = 4: a packer takes each of 6 long tasks alone; the best runs them all together.
    dag, machines = figure_10(4), one_machine(4)
    assert replay(dag, machines, None).span == pytest.approx(6, abs=0.01)
    order = build(dag, machines)
    assert order.span == pytest.approx(1, abs=0.01)


def test_two_jobs_in_the_order_of_one_take_twice_as_long_as_one():
    # Figure 3: t1, t3, t4, then t0, t2 and t5, which fill the machine for T; so two jobs take 2 T and a little.
    one, both, machines = like_figure_2(), like_figure_3(), one_machine(2)
    ranks = build(one, machines).ranks
    order = [one.stages[row].name for row in np.argsort([those[0] for those in ranks], kind="stable")]
    assert max(order.index(name) for name in ("t1", "t3", "t4")) < min(order.index(name) for name in ("t0", "t2", "t5"))
    assert replay(both, machines, [*ranks, *ranks]).span == pytest.approx(2, abs=0.11)
    assert build(both, machines).span == pytest.approx(2, abs=0.11)
    assert replay(both, machines, breadth_first(both)).span > 2.9
    assert replay(both, machines, None).span > 2.9


def test_a_job_that_takes_a_second_goes_by_the_longest_path():
    # Two tasks of 0.4 s that cannot run together: 0.8 s, and nobody looks for more.
    dag = Dag([stage("a", 1, 0.4, [0.6]), stage("b", 1, 0.4, [0.7])])
    assert list(build(dag, one_machine()).spans) == ["longest path"]


def test_a_job_whose_tasks_all_run_at_once_goes_by_the_longest_path():
    # Four tasks of a tenth at most beside each other: no order is better, so none is looked for.
    dag = Dag([stage("a", 2, 9, [0.1]), stage("b", 1, 4, [0.1]), stage("c", 1, 3, [0.1], "a", "b")])
    order = build(dag, one_machine())
    assert list(order.spans) == ["longest path"]
    assert order.span == order.bounds.tightest == 12


def test_seconds_may_be_whole_numbers():
    dag = Dag([Stage("a", np.array([1, 2]), np.array([1])), Stage("b", np.array([3]), np.array([1]), (Parent("a"),))])
    assert build(dag, one_machine()).span == 6


def test_a_plain_dag_has_no_troublesome_stages():
    # A chain is cut at each stage; of two stages side by side neither goes before the other.
    chain = Dag([stage("a", 3, 1, [0.6]), stage("b", 3, 2, [0.6], "a")])
    pair = Dag([stage("a", 3, 1, [0.6]), stage("b", 3, 2, [0.6])])
    for dag in (chain, pair):
        assert not build(dag, one_machine(), effort=50).trouble.any()


def test_the_usual_effort_grows_with_the_tasks_up_to_some():
    assert usual_effort(Dag([stage("a", 1_000, 1, [0.1])])) == 6_000
    assert usual_effort(Dag([stage("a", 100_000, 1, [0.1])])) == 20_000


def test_shrinking_work_counts_what_is_left_of_a_stage():
    # a takes 4 s alone and b 2 s behind it: a's tasks have 6, 5, 4 and 3 s before them, b's 2 and 1.
    dag = Dag([stage("a", 4, 1, [1]), stage("b", 2, 1, [1], "a")])
    assert [(-ranks).tolist() for ranks in shrinking_work(dag, one_machine())] == [[6, 5, 4, 3], [2, 1]]


def test_strip_part_goes_by_levels_and_has_the_longest_of_a_level_first():
    dag = Dag(
        [
            stage("short", 1, 1, [1]),
            stage("long", 1, 5, [1]),
            stage("middle", 1, 3, [1]),
            stage("last", 1, 9, [1], "short"),
        ]
    )
    assert [ranks.item(0) for ranks in strip_part(dag)] == [2, 0, 1, 3]


def test_coffman_and_graham_go_by_labels_that_are_given_from_the_end():
    # a and b before c, b before d: c and d get the labels 0 and 1. a's children are {0}, b's {1, 0}: 2 and 3.
    dag = Dag(
        [stage("a", 1, 1, [1]), stage("b", 1, 1, [1]), stage("c", 1, 1, [1], "a", "b"), stage("d", 1, 1, [1], "b")]
    )
    assert [-ranks.item(0) for ranks in coffman_graham(dag)] == [2, 3, 0, 1]


@settings(max_examples=30, deadline=None)
@given(drawn(most_stages=7, most_tasks=5))
def test_an_order_is_valid_never_worse_than_a_simple_one_and_the_same_again(scene):
    dag, machines = scene
    order = build(dag, machines, effort=2_000)
    simple = [breadth_first(dag), longest_path(dag), strip_part(dag), coffman_graham(dag)]
    assert order.span <= min(replay(dag, machines, ranks).span for ranks in simple) + 1e-9
    assert order.span >= order.bounds.tightest - 1e-6
    again = replay(dag, machines, order.ranks)
    assert again.span == pytest.approx(order.span)
    for row, begins in enumerate(again.begins):
        for edge in dag.parents[row]:
            ends = again.begins[edge.row] + dag.stages[edge.row].seconds
            assert (begins >= (ends if edge.one_to_one else ends.max()) - 1e-6).all()
    same = build(dag, machines, effort=2_000)
    assert same.spans == order.spans


@settings(max_examples=60, deadline=None)
@given(drawn(most_stages=7, most_tasks=5))
def test_a_replay_takes_no_more_than_there_is(scene):
    dag, machines = scene
    begins = replay(dag, machines, at_random(dag, np.random.default_rng(1))).begins
    lasts = [stage.seconds for stage in dag.stages]
    for moment in {float(value) for those in begins for value in those}:
        running = sum(
            ((those <= moment + 1e-9) & (those + seconds > moment + 1e-9)).sum() * dag.demand[row]
            for row, (those, seconds) in enumerate(zip(begins, lasts, strict=True))
        )
        assert (running <= machines.count * machines.capacity + 1e-6).all()


@settings(max_examples=60, deadline=None)
@given(drawn(most_stages=8, most_tasks=5))
def test_many_stages_that_wait_are_started_as_few_are(scene):
    dag, machines = scene
    one_by_one = Replay(dag, machines).run(longest_path(dag))
    late = one_by_one.span * 0.9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("extender.graph.replay._MANY", 0)
        together = Replay(dag, machines).run(longest_path(dag))
        given_up = Replay(dag, machines).run(longest_path(dag), most=late)
    assert [begins.tolist() for begins in together.begins] == [begins.tolist() for begins in one_by_one.begins]
    assert given_up.span == np.inf


def test_a_stage_that_goes_on_one_by_one_need_not_wait_for_all():
    dag = Dag([stage("map", 4, 1, [1]), stage("next", 4, 1, [0], one_to_one=("map",))])
    run = replay(dag, one_machine(), breadth_first(dag))
    assert run.begins[1].tolist() == [1, 2, 3, 4]
    assert run.span == 5


def test_tasks_that_come_to_wait_one_by_one_start_by_their_ranks():
    # While the child's first task runs, the others come to wait in their order, and their ranks turn it round.
    parent = Stage("map", np.array([1.0, 2, 3, 4]), np.array([0.0]))
    dag = Dag([parent, stage("next", 4, 10, [1], one_to_one=("map",))])
    run = replay(dag, one_machine(), [np.zeros(4), np.array([3.0, 2, 1, 0])])
    assert run.begins[1].tolist() == [1, 31, 21, 11]
    equal = replay(dag, one_machine(), [np.zeros(4), np.ones(4)])
    assert equal.begins[1].tolist() == [1, 11, 21, 31]


@pytest.mark.parametrize("order", [longest_path, lambda dag: shrinking_work(dag, one_machine())])
def test_a_task_that_comes_to_wait_does_not_line_up_all_others_again(order, monkeypatch):
    lined_up = []

    def counted(rank, ranks, tasks):
        lined_up.append(len(tasks))
        return _Line(rank, ranks, tasks)

    monkeypatch.setattr("extender.graph.replay._Line", counted)
    parent = Stage("map", 1 + np.arange(200) / 200, np.array([0.0]))
    dag = Dag([parent, stage("next", 200, 10, [1], one_to_one=("map",))])
    replay(dag, one_machine(), order(dag))
    assert sum(lined_up) <= 3 * 400


def test_of_many_stages_that_demand_the_same_only_those_are_tried_that_may_fit(monkeypatch):
    # 200 stages wait, two run at a time: at each end one of them is tried more than starts.
    places, place = [], _Run._place
    monkeypatch.setattr(_Run, "_place", lambda self, row, *rest: places.append(row) or place(self, row, *rest))
    dag = Dag([stage(f"s{row}", 1, 1 + row / 200, [0.5]) for row in range(200)])
    run = replay(dag, one_machine(), longest_path(dag))
    assert run.span == pytest.approx(dag.total.sum() / 2, rel=0.01)
    assert len(places) <= 2 * len(dag)


def test_stages_of_one_demand_start_by_rank_though_one_gets_a_smaller_rank_while_it_waits():
    # While "long" runs, b's task 0 waits with rank 5, then c with 3; b's task 1 comes last, and its rank is 1.
    parent = Stage("map", np.array([1.0, 2]), np.array([0.0]))
    long, late = stage("long", 1, 4, [1]), stage("c", 1, 10, [1], "map")
    dag = Dag([parent, long, stage("b", 2, 10, [1], one_to_one=("map",)), late])
    run = replay(dag, one_machine(), [np.zeros(2), np.zeros(1), np.array([5.0, 1]), np.array([3.0])])
    assert [run.begins[row].tolist() for row in (1, 2, 3)] == [[0], [24, 4], [14]]


def test_a_placement_that_costs_far_more_than_the_search_is_given_up(monkeypatch):
    assert PAPER in build(like_figure_9(10), one_machine()).spans
    monkeypatch.setattr("extender.graph.building._GIVEN_UP", 0)
    order = build(like_figure_9(10), one_machine())
    assert PAPER not in order.spans
    assert order.span < np.inf


def test_a_search_that_ends_within_its_first_replay_orders_by_the_longest_path():
    dag, machines = like_figure_9(10), one_machine()
    order = build(dag, machines, ended=lambda: True)
    assert (order.won, order.spans, order.span, list(order.begins)) == ("longest path", {}, np.inf, [])
    for ranks, expected in zip(order.ranks, longest_path(dag), strict=True):
        np.testing.assert_array_equal(ranks, expected)


def test_a_replay_of_very_many_tasks_stops_soon_when_the_time_is_over():
    """Of a hundred waves of tasks none begins after the third."""
    dag, asked = Dag([stage("a", 100, 1, [1])]), []
    order = build(dag, one_machine(), ended=lambda: len(asked) >= 3 or asked.append(1))
    assert order.span == np.inf
    assert len(asked) == 3


def test_with_more_time_an_order_is_no_worse_and_it_stops_soon():
    dag, machines = like_figure_9(6), one_machine()
    before = np.inf
    for allowed in (0, 30, 100, 400):
        asked = []
        order = build(
            dag, machines, ended=lambda asked=asked, allowed=allowed: len(asked) >= allowed or asked.append(1)
        )
        assert len(asked) <= allowed
        assert order.span <= before
        if order.span < np.inf:
            assert replay(dag, machines, order.ranks).span == pytest.approx(order.span)
        before = order.span
    assert before < np.inf


def test_many_machines_share_a_stage():
    dag = Dag([stage("a", 100, 2, [0.5]), stage("b", 10, 1, [1], "a")])
    assert build(dag, Machines(10, np.ones(1))).span == pytest.approx(11)

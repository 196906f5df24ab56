"""Bounds: the paper's worked example, and that none exceeds what is best."""

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from extender.graph import Dag, Machines, bounds_of
from extender.graph.replay import replay
from extender.graph.space import Space
from tests.service.graph.dags import drawn, figure_8, figure_18, one_machine, stage


def test_the_bounds_of_figure_18():
    bounds = bounds_of(figure_18(), one_machine())
    assert bounds.cp_len == pytest.approx(14)
    assert bounds.t_work == pytest.approx(12, abs=1e-4)
    assert bounds.new_lb == pytest.approx(22.8, abs=1e-4)
    assert bounds.tightest == pytest.approx(23, abs=1e-4)  # of S7 one task runs at a time
    assert bounds.mod_cp <= bounds.new_lb


def test_the_bound_of_figure_8_is_what_is_best():
    # (k + d - 1) t for d groups of k tasks of one t.
    assert bounds_of(figure_8(4, 10), one_machine(4)).tightest == pytest.approx(13)


def test_a_part_of_one_stage_of_equal_tasks_needs_no_windows(monkeypatch):
    monkeypatch.delattr("extender.graph.windows.Windows._ways")
    dag = Dag([stage("a", 3, 2, [0.6]), stage("b", 4, 1, [0.5], "a"), stage("c", 1, 5, [1], "b")])
    bounds = bounds_of(dag, one_machine())
    assert bounds.tightest == pytest.approx(6 + 2 + 5)
    assert bounds.behind.tolist() == pytest.approx([2 + 2 + 5, 1 + 5, 5])


def test_twice_as_many_parts_cost_twice_as_much():
    assert steps_of_bounds(parts=160) < 2.2 * steps_of_bounds(parts=80)


def steps_of_bounds(parts):
    """Return how many lines run in `windows`, each turn of a loop by itself, for parts of two stages and a join."""
    stages = []
    for part in range(parts):
        before = [f"join-{part - 1}"] if part else []
        sides = [stage(f"{side}-{part}", 2, 1 + part % 3, [0.3], *before) for side in "ab"]
        stages += [*sides, stage(f"join-{part}", 1, 1, [0.3], f"a-{part}", f"b-{part}")]
    dag, steps = Dag(stages), itertools.count()

    def count(frame, *_):
        if frame.f_code.co_filename.endswith("windows.py"):
            next(steps)
            return count
        return None

    known = sys.gettrace()
    sys.settrace(count)
    try:
        bounds_of(dag, one_machine())
    finally:
        sys.settrace(known)
    return next(steps)


def test_tasks_of_years_are_bounded_without_a_warning():
    # Behind the head of d, 3e9 s, and before the tail of a, as long, there is no window in which anything could run.
    chain = [stage("a", 1, 1e9, [0.5]), stage("b", 1, 1e9, [0.4], "a"), stage("c", 1, 1e9, [0.3], "b")]
    beside = [stage("e", 2, 1e9, [0.6]), stage("f", 2, 1e9, [0.6], "e")]
    dag = Dag([*chain, stage("d", 1, 1e9, [0.6], "c"), *beside])
    assert 5.9e9 < bounds_of(dag, one_machine()).tightest <= 6e9  # b and c run beside e or f, a and d beside none


def test_a_stage_counts_by_how_its_tasks_fit_on_machines():
    dag = Dag([stage("a", 10, 1, [0.6])])
    bounds = bounds_of(dag, Machines(3, np.ones(1)))
    assert bounds.t_work == pytest.approx(2)
    assert bounds.tightest == pytest.approx(4)  # one on each of three machines


def test_work_between_a_head_and_a_tail_counts():
    # Ten tasks that fill the machine run after `first` and before `last`, besides one that needs nobody.
    stages = [stage("first", 1, 5, [0.1]), stage("last", 1, 5, [0.1], "x", "y"), stage("beside", 1, 5, [0.1])]
    stages += [stage("x", 5, 1, [1], "first"), stage("y", 5, 1, [1], "first")]
    assert bounds_of(Dag(stages), one_machine()).tightest == pytest.approx(20)


def test_of_a_task_too_long_to_lie_outside_a_window_a_part_counts_inside():
    # `long` could begin at once, but 9 of its 10 s lie behind second 1, as all of b does: (9 + 12) / 2 s more.
    dag = Dag([stage("long", 1, 10, [0.5]), stage("a", 1, 1, [0.1]), stage("b", 12, 1, [0.5], "a")])
    assert bounds_of(dag, one_machine()).tightest == pytest.approx(11.5, rel=1e-4)


def test_tasks_of_more_than_half_of_a_machine_share_none():
    # 3 of 0.6 and 3 of 0.51 on two machines, each 4 s: one at a time on each, so 3 waves; all work is 6.7 s.
    dag = Dag([stage("a", 3, 4, [0.6]), stage("b", 3, 4, [0.51])])
    bounds = bounds_of(dag, Machines(2, np.ones(1)))
    assert bounds.t_work == pytest.approx(6.66)
    assert bounds.tightest == pytest.approx(12, rel=1e-4)


def test_what_does_not_fit_beside_each_other_needs_a_second_wave():
    # On two machines of 4 slots run 8 tasks of a at a time; a ninth task, of b, waits 10 s for one of them.
    dag = Dag([stage("a", 8, 10, [0.25]), stage("b", 1, 12, [0.25])])
    bounds = bounds_of(dag, Machines(2, np.ones(1)))
    assert bounds.t_work == pytest.approx(11.5)
    assert bounds.tightest == pytest.approx(20, rel=1e-4)


def test_before_a_join_all_must_have_run():
    # x and y take 8 s one after the other, then `join` 1 s; `beside` is alone on its path with 5 s.
    dag = Dag([stage("x", 1, 4, [0.6]), stage("y", 1, 4, [0.6]), stage("join", 1, 1, [0.1], "x", "y")])
    bounds = bounds_of(dag, one_machine())
    assert bounds.cp_len == 5
    assert bounds.tightest == pytest.approx(9, rel=1e-4)


@settings(max_examples=200, deadline=None)
@given(drawn(most_stages=8, most_tasks=5))
def test_no_task_ends_all_sooner_than_is_known_of_its_stage(scene):
    dag, machines = scene
    behind = bounds_of(dag, machines).behind
    run = replay(dag, machines, [np.full(count, float(row)) for row, count in enumerate(dag.count.tolist())])
    for row, begins in enumerate(run.begins):
        assert (begins + behind[row] <= run.span * (1 + 1e-6)).all()


@settings(max_examples=100, deadline=None)
@given(drawn(most_stages=4, most_tasks=2))
def test_no_bound_exceeds_the_best_of_all_orders(scene):
    dag, machines = scene
    best = best_span(dag, machines)
    bounds = bounds_of(dag, machines)
    for name in ("cp_len", "t_work", "mod_cp", "new_lb", "tightest"):
        assert getattr(bounds, name) <= best * (1 + 1e-6), name
    assert bounds.new_lb >= max(bounds.cp_len, bounds.t_work) * (1 - 1e-9)
    assert bounds.tightest >= bounds.new_lb * (1 - 1e-9)


@settings(max_examples=300, deadline=None)
@given(drawn(most_stages=8, most_tasks=6))
def test_no_bound_exceeds_a_replay(scene):
    dag, machines = scene
    span = replay(dag, machines, [np.full(count, float(row)) for row, count in enumerate(dag.count.tolist())]).span
    assert bounds_of(dag, machines).tightest <= span * (1 + 1e-6)


def best_span(dag, machines):
    """Return the least span over all orders of tasks and all machines for each (each as early as it can)."""
    tasks = [(row, task) for row, stage in enumerate(dag.stages) for task in range(len(stage.seconds))]
    best = np.inf

    def extend(done, spaces, ends):
        nonlocal best
        if len(done) == len(tasks):
            best = min(best, max(ends.values()))
            return
        for row, task in tasks:
            if (row, task) in done:
                continue
            before = [
                (edge.row, other)
                for edge in dag.parents[row]
                for other in ([task] if edge.one_to_one else range(len(dag.stages[edge.row].seconds)))
            ]
            if not all(one in done for one in before):
                continue
            earliest = max((ends[one] for one in before), default=0.0)
            seconds = float(dag.stages[row].seconds[task])
            for number in range(len(spaces)):
                space = spaces[number].clone()
                (begin,) = space.place(1, seconds, dag.demand[row], earliest)
                end = begin + seconds
                if end < best - 1e-9:
                    after = [space if other == number else spaces[other] for other in range(len(spaces))]
                    extend(done | {(row, task)}, after, {**ends, (row, task): end})
                if spaces[number].times == [spaces[number].times[0]]:
                    break  # all machines behind this one are empty, too

    extend(frozenset(), [Space(Machines(1, machines.capacity)) for _ in range(machines.count)], {})
    return best


def test_brute_force_finds_what_is_best_for_independent_tasks():
    # Of 3, 3, 2, 2 and 2 seconds on two machines, one at a time on each: 6.
    lasts = [3, 3, 2, 2, 2]
    dag = Dag([stage(f"s{row}", 1, seconds, [1.0]) for row, seconds in enumerate(lasts)])
    machines = Machines(2, np.ones(1))
    by_hand = min(
        max(sum(s for s, on in zip(lasts, where, strict=True) if on == m) for m in (0, 1))
        for where in itertools.product((0, 1), repeat=5)
    )
    assert best_span(dag, machines) == by_hand == 6

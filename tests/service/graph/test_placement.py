"""Placing on machines over time: what fits, in any order of subsets that has no dead end."""

import numpy as np
import pytest
from hypothesis import given, settings

from extender.graph import Dag, Machines
from extender.graph.placement import StagePlacement, most_compact
from extender.graph.space import Space
from extender.graph.subsets import candidates, divide
from tests.service.graph.dags import drawn, four_subsets, like_figure_2, one_machine, stage


def test_tasks_go_in_waves_over_all_machines_from_the_earliest_moment():
    space = Space(Machines(2, np.ones(1)))
    assert space.place(5, 2.0, np.array([0.5]), 1.0).tolist() == [1, 1, 1, 1, 3]
    assert space.place(3, 1.0, np.array([0.5]), 0.0).tolist() == [0, 0, 0]
    assert space.place(1, 3.0, np.array([0.1]), 0.0).tolist() == [3], "there is no room for so long before"


def test_a_gap_is_used_by_what_is_short_enough():
    space = Space(one_machine())
    space.place(1, 2.0, np.array([1.0]), 5.0)
    assert space.place(1, 6.0, np.array([1.0]), 0.0).tolist() == [7]
    assert space.place(1, 5.0, np.array([1.0]), 0.0).tolist() == [0]


def test_a_task_that_demands_nothing_goes_at_once():
    assert Space(one_machine()).place(3, 1.0, np.array([0.0]), 2.0).tolist() == [2, 2, 2]


def test_backwards_is_as_late_as_can_be():
    dag = Dag([stage("a", 1, 1, [0.5]), stage("b", 1, 1, [1], "a"), stage("c", 1, 3, [0.5], "a")])
    stages = np.ones(3, dtype=bool)
    forwards, backwards = (
        getattr(StagePlacement.empty(dag, one_machine()), way)(stages) for way in ("forwards", "backwards")
    )
    assert [float(forwards.begins[row][0]) for row in range(3)] == [0, 4, 1]
    assert [float(backwards.begins[row][0]) for row in range(3)] == [
        -5,
        -4,
        -3,
    ]  # the longest of those that are last goes first
    assert forwards.span == backwards.span == 5


@settings(max_examples=200, deadline=None)
@given(drawn(most_stages=7, most_tasks=4, seconds=(2.0,)))
def test_whatever_is_troublesome_a_placement_is_possible(scene):
    dag, machines = scene
    for rows in dag.parts():
        for subsets in candidates(dag, machines, rows):
            every = np.vstack((subsets.trouble, subsets.parents, subsets.children, subsets.siblings))
            assert np.flatnonzero(every.any(axis=0)).tolist() == sorted(rows.tolist())
            assert (every.sum(axis=0) <= 1).all()
            check(dag, machines, rows, most_compact(dag, machines, subsets))


def test_exactly_the_orders_without_a_dead_end_are_tried(monkeypatch):
    # Of section 4.3: ancestors always backwards, descendants always forwards, the rest by what stands already.
    dag = four_subsets()
    subsets = divide(dag, dag.rows, np.array([one.name == "b" for one in dag.stages]))
    letters = {getattr(subsets, name).tobytes(): name[0] for name in ("trouble", "parents", "children", "siblings")}
    whole = set()

    def noted(way):
        original = getattr(StagePlacement, way)

        def method(self, stages):
            result = original(self, stages)
            result.trail = [*getattr(self, "trail", []), letters[stages.tobytes()] + way[0]]
            if len(result.trail) == 4:
                whole.add(" ".join(result.trail))
            return result

        return method

    for way in ("forwards", "backwards"):
        monkeypatch.setattr(StagePlacement, way, noted(way))
    most_compact(dag, one_machine(), subsets)
    first_way, sibling_way = next(iter(whole))[1], {trail[4] for trail in whole if trail[3] == "s"}
    assert len(sibling_way) == 1, "the more compact of both ways"
    way = sibling_way.pop()
    assert whole == {
        f"t{first_way} cf sb pb",
        f"t{first_way} pb sf cf",
        f"t{first_way} s{way} pb cf",
        f"t{first_way} s{way} cf pb",
    }


def check(dag, machines, rows, placement):
    """Check that all tasks are placed, behind their parents, with room for all."""
    assert sorted(placement.begins) == sorted(rows.tolist())
    seconds = dag.total / dag.count
    moments = []
    for row, begins in placement.begins.items():
        assert len(begins) == dag.count[row]
        for edge in dag.parents[row]:
            if edge.row in placement.begins:
                ends = placement.begins[edge.row] + seconds[edge.row]
                assert (begins >= (ends if edge.one_to_one else ends.max()) - 1e-6).all()
        moments += begins.tolist()
    capacity = machines.count * machines.capacity
    for moment in set(moments):
        now = sum(
            ((begins <= moment + 1e-6) & (begins + seconds[row] > moment + 1e-6)).sum() * dag.demand[row]
            for row, begins in placement.begins.items()
        )
        assert (now <= capacity + 1e-6).all()


def test_the_long_tasks_of_figure_2_are_troublesome_and_overlap():
    dag = like_figure_2()
    trouble = np.array([stage.name in ("t0", "t2", "t5") for stage in dag.stages])
    subsets = divide(dag, dag.rows, trouble)
    assert [dag.stages[row].name for row in np.flatnonzero(subsets.parents)] == ["t1", "t3", "t4"]
    assert not subsets.children.any()
    assert not subsets.siblings.any()
    placement = most_compact(dag, one_machine(2), subsets)
    assert placement.span == pytest.approx(1.05, abs=0.011)
    found = {one.trouble.tobytes() for one in candidates(dag, one_machine(2), dag.rows)}
    assert trouble.tobytes() in found

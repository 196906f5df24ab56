"""Troublesome stages: each choice of thresholds that makes a difference, each set once, and what lies between."""

import numpy as np
import pytest
from hypothesis import given, settings

from extender.graph import Dag, Machines
from extender.graph.subsets import candidates, closure, divide, scores
from tests.service.graph.dags import drawn, four_subsets, one_machine, stage


def sets(dag, machines, rows):
    return [frozenset(np.flatnonzero(one.trouble).tolist()) for one in candidates(dag, machines, rows)]


def test_long_score_is_by_the_longest_and_frag_score_is_work_by_the_time_alone():
    dag = Dag([stage("half", 4, 2, [0.6]), stage("long", 1, 8, [0.5])])
    long_score, frag_score = scores(dag, one_machine(), dag.rows)
    assert long_score.tolist() == [0.25, 1]
    # 4 tasks of 2 s at 0.6: work 4.8, but one at a time: 8 s. One of 8 s at 0.5: work 4 in 8 s.
    assert frag_score == pytest.approx([0.6, 0.5])


def test_what_lies_between_two_troublesome_stages_is_troublesome_too():
    dag = four_subsets()
    chosen = np.array([one.name in ("a", "d") for one in dag.stages])
    assert [dag.stages[row].name for row in np.flatnonzero(closure(dag, dag.rows, chosen))] == ["a", "b", "c", "d"]


def test_the_others_are_parents_children_and_siblings_of_the_troublesome():
    dag = four_subsets()
    trouble = np.array([one.name in ("b",) for one in dag.stages])
    subsets = divide(dag, dag.rows, trouble)
    named = {
        part: [dag.stages[row].name for row in np.flatnonzero(getattr(subsets, part))]
        for part in ("trouble", "parents", "children", "siblings")
    }
    assert named == {"trouble": ["b"], "parents": ["a"], "children": ["d"], "siblings": ["c", "e"]}


def test_each_pair_of_thresholds_that_makes_a_difference_is_tried_and_each_set_once():
    # Ten stages of which each is longer than the one before, all as hard to pack: the 7 longest at most, of 10 tasks.
    dag = Dag([stage(f"s{row}", 1, row + 1, [0.5]) for row in range(10)])
    found = sets(dag, one_machine(), dag.rows)
    assert sorted(found, key=len) == [frozenset(range(row, 10)) for row in range(9, 2, -1)]


@settings(max_examples=100, deadline=None)
@given(drawn(most_stages=7, most_tasks=3))
def test_all_sets_of_all_thresholds_are_found_once_but_those_with_nearly_all_tasks(scene):
    dag, machines = scene
    for rows in dag.parts():
        long_score, frag_score = (np.round(score, 9) for score in scores(dag, machines, rows))
        inside = np.isin(np.arange(len(dag)), rows)
        every = set()
        for long in [np.inf, *long_score[rows].tolist()]:
            for frag in [-np.inf, *frag_score[rows].tolist()]:
                trouble = closure(dag, rows, inside & ((long_score >= long) | (frag_score <= frag)))
                if trouble.any() and dag.count[trouble].sum() <= 0.75 * dag.count[rows].sum():
                    every.add(frozenset(np.flatnonzero(trouble).tolist()))
        found = sets(dag, machines, rows)
        assert len(found) == len(set(found))
        assert set(found) == every


def test_thresholds_that_lie_far_apart_come_first():
    dag = Dag([stage(f"s{row:02}", 1, row + 1, [0.5]) for row in range(40)])
    first = [len(trouble) for trouble in sets(dag, one_machine(), dag.rows)[:4]]
    assert max(first) - min(first) >= 10


def test_troublesome_sets_are_of_a_part():
    dag = Dag([stage("a", 1, 1, [1]), stage("b", 1, 5, [1], "a"), stage("c", 9, 1, [0.2], "a")])
    (first, second) = dag.parts()
    assert sets(dag, Machines(1, np.ones(1)), first) == []  # it would be all of it
    assert sets(dag, Machines(1, np.ones(1)), second) == [frozenset({1})]

"""What a DAG must be, and where it can be cut."""

import numpy as np
import pytest

from extender.errors import GraphError
from extender.graph import Dag, Machines, Parent, Stage
from tests.service.graph.dags import figure_18, stage


def names(dag, parts):
    return [sorted(dag.stages[row].name for row in part.tolist()) for part in parts]


@pytest.mark.parametrize(
    ("stages", "error"),
    [
        ([], "the DAG has no stages; accepted: one or more"),
        ([stage("a", 1, 1, [1]), stage("a", 1, 1, [1])], "stage 'a' stands twice; accepted: each name once"),
        ([stage("a", 1, 1, [1], "b")], "stage 'a': parents: there is no stage 'b'"),
        (
            [stage("a", 1, 1, [1]), stage("b", 1, 1, [1], "a", "a")],
            "stage 'b': parents: 'a' stands twice; accepted: each name once",
        ),
        ([stage("a", 0, 1, [1])], "stage 'a': seconds: it has no tasks; accepted: one or more"),
        ([stage("a", 1, np.nan, [1])], "stage 'a': seconds; accepted: numbers above 0"),
        ([stage("a", 1, 0, [1])], "stage 'a': seconds; accepted: numbers above 0"),
        ([stage("a", 1, 1, [-1])], "stage 'a': demand; accepted: numbers of 0 or more"),
        (
            [stage("a", 1, 1, [1]), stage("b", 1, 1, [1, 1])],
            "stage 'b': demand: 2 resources; accepted: 1, as in the first stage",
        ),
        (
            [stage("a", 2, 1, [1]), stage("b", 3, 1, [1], one_to_one=("a",))],
            "stage 'b': parents: 'a' has 2 tasks, the stage 3; accepted one to one: as many",
        ),
        (
            [
                stage("z", 1, 1, [1], "c"),
                stage("a", 1, 1, [1], "c"),
                stage("b", 1, 1, [1], "a"),
                stage("c", 1, 1, [1], "b"),
            ],
            "stages wait for each other: b -> c -> a -> b; accepted: no cycle",
        ),
    ],
)
def test_what_no_dag_can_be_is_named(stages, error):
    with pytest.raises(GraphError) as raised:
        Dag(stages)
    told = str(raised.value)
    if "wait for each other" in error:
        assert told.startswith("stages wait for each other: ")
        assert {"a", "b", "c"} == set(told.split(": ")[1].split(";")[0].split(" -> "))
    else:
        assert told == error


def test_a_task_that_is_larger_than_a_machine_is_named():
    with pytest.raises(GraphError, match=r"stage 'b': demand: a task takes 1\.5 of resource 0, a machine has 1"):
        Dag([stage("a", 1, 1, [1]), stage("b", 1, 1, [1.5])]).check_fit(Machines(4, np.ones(1)))


def test_stages_may_come_in_any_order():
    dag = Dag([stage("c", 1, 1, [1], "b"), stage("a", 1, 1, [1]), stage("b", 1, 1, [1], "a")])
    assert [dag.stages[row].name for row in dag.rows.tolist()] == ["a", "b", "c"]


def test_a_dag_is_cut_behind_a_stage_that_all_others_come_before_or_behind():
    dag = figure_18()
    assert names(dag, dag.parts()) == [["S1", "S2", "S3", "S4", "S5", "S6"], ["S7", "S8"]]


def test_a_dag_is_cut_also_where_an_edge_leads_past_the_cut():
    dag = Dag([stage("a", 1, 1, [1]), stage("b", 1, 1, [1], "a"), stage("c", 1, 1, [1], "a", "b")])
    assert names(dag, dag.parts()) == [["a"], ["b"], ["c"]]


def test_there_is_no_cut_where_tasks_go_on_one_by_one():
    dag = Dag([stage("a", 3, 1, [1]), stage("b", 3, 1, [1], one_to_one=("a",)), stage("c", 1, 1, [1], "b")])
    assert names(dag, dag.parts()) == [["a", "b"], ["c"]]


def test_a_long_chain_is_cut_everywhere():
    count = 20_000
    chain = [stage(f"s{row}", 1, 1, [1], *([f"s{row - 1}"] if row else [])) for row in range(count)]
    assert len(Dag(chain).parts()) == count


def test_a_self_loop_is_a_cycle():
    with pytest.raises(GraphError, match="stages wait for each other: a -> a"):
        Dag([Stage("a", np.ones(1), np.ones(1), (Parent("a"),))])

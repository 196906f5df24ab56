"""Workflows of WfCommons, as published in each form of its format; and documents that are wrong."""

import json

import pytest

from extender.errors import TraceError
from lab.sim.files.jobs import workload_of
from lab.sim.files.wfformat import wfformat_job
from lab.sim.workloads import specs
from lab.sim.workloads.parameters import Parameters

SPLIT = {"name": "split", "id": "s", "parents": [], "children": ["a", "b"]}
BLASTS = [{"name": "blast", "id": name, "parents": ["s"], "children": ["c"]} for name in "ab"]
CAT = {"name": "cat", "id": "c", "parents": ["a", "b"], "children": []}
TASKS = [SPLIT, *BLASTS, CAT]
TOOK = [
    {"id": "s", "runtimeInSeconds": 1},
    {"id": "a", "runtimeInSeconds": 5, "coreCount": 2, "memoryInBytes": 2**30},
    {"id": "b", "runtimeInSeconds": 7, "coreCount": 2, "memoryInBytes": 2**30, "machine": "m"},
    {"id": "c", "runtimeInSeconds": 0},
]


def document(tasks=TASKS, took=TOOK):
    workflow = {"specification": {"tasks": tasks}, "execution": {"makespanInSeconds": 9, "tasks": took}}
    return {"name": "blast", "schemaVersion": "1.5", "workflow": workflow}


@pytest.fixture
def stages(tmp_path):
    """Return what reads a document's stages, by name."""

    def read(made):
        path = tmp_path / "workflow.json"
        path.write_text(made if isinstance(made, str) else json.dumps(made))
        [(_, line)] = wfformat_job(path)
        return {stage.name: stage for stage in line.stages}

    return read


def test_tasks_that_are_alike_are_one_stage(stages):
    found = stages(document())
    assert list(found) == ["s", "a", "c"]
    assert found["a"].seconds == [5, 7]
    assert found["a"].demand == {"cpu": 2, "memory": 2**30}
    assert (found["a"].parents, found["c"].parents) == (["s"], ["a"])
    assert found["s"].demand == {"cpu": 1}
    assert found["c"].seconds == [0.001]


def test_tasks_of_one_name_with_other_parents_are_stages_of_their_own(stages):
    pipelines = [SPLIT, *BLASTS, *({**CAT, "id": f"c{name}", "parents": [name]} for name in "ab")]
    pipelines = [{**task, "children": []} for task in pipelines]
    took = [{"id": task["id"], "runtimeInSeconds": 2} for task in pipelines]
    found = stages(document(pipelines, took))
    assert {name: stage.parents for name, stage in found.items()} == {
        "s": [],
        "a": ["s"],
        "b": ["s"],
        "ca": ["a"],
        "cb": ["b"],
    }


def test_the_form_before_1_5_has_all_of_a_task_in_one_place(stages):
    tasks = [{**task, **took} for task, took in zip(TASKS, TOOK, strict=True)]
    assert stages({"name": "blast", "workflow": {"tasks": tasks}}) == stages(document())


def test_the_oldest_form_names_parents_by_their_names(stages):
    tasks = [
        {"name": "first", "id": "ID1", "runtime": 3.0, "cores": 4, "memory": 10},
        {"name": "then", "id": "ID2", "parents": ["first"], "runtime": 2.0},
    ]
    found = stages({"workflow": {"tasks": tasks}})
    assert found["ID1"].demand == {"cpu": 4, "memory": 10_000}  # KB
    assert found["ID2"].parents == ["ID1"]
    assert stages({"schemaVersion": "1.1", "workflow": {"jobs": tasks}}) == found


def test_a_workflow_is_a_workload_of_one_job(tmp_path):
    path = tmp_path / "workflow.json"
    path.write_text(json.dumps(document()))
    workload = workload_of(path, specs.machines("2x2c8g,disk=1G,net=1G", Parameters()))
    assert [stage.tasks for stage in workload.jobs[0].stages] == [1, 2, 1]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ('{"workflow"', "not one JSON document (is it cut off?)"),
        ("[]", "Expected `object`"),
        ({"workflow": {}}, "field workflow: no tasks; needed"),
        ({"workflow": {"specification": {"tasks": TASKS}}}, "field workflow: no execution"),
        (document([], []), "field workflow.specification.tasks: there are none"),
        (document(took=TOOK[1:]), "field workflow.specification.tasks[0].id: 's' is not in workflow.execution.tasks"),
        (document([*TASKS, CAT]), "field workflow.specification.tasks[4].id: 'c' stands twice"),
        (document([SPLIT, {**CAT, "parents": ["z"]}]), "tasks[0].children[0]: there is no task 'a'"),
        (document(took=[{**TOOK[0], "runtimeInSeconds": -1}]), "execution.tasks[0].runtimeInSeconds: Expected"),
        (document(took=[{"id": name} for name in "sabc"]), "tasks[0]: nobody says what it took; needed"),
        (document([{"parents": []}]), "field workflow.specification.tasks[0]"),
    ],
)
def test_what_is_wrong_is_named_with_its_field(stages, made, said):
    with pytest.raises(TraceError) as refused:
        stages(made)
    assert said in str(refused.value)


def test_a_cycle_is_refused(tmp_path):
    path = tmp_path / "workflow.json"
    path.write_text(json.dumps(document([{**SPLIT, "parents": ["c"]}, *TASKS[1:]])))
    with pytest.raises(TraceError, match="a cycle of parents"):
        workload_of(path, specs.machines("2x2c8g,disk=1G,net=1G", Parameters()))

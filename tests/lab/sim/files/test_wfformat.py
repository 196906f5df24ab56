"""Workflows of WfCommons, as published in each form of its format; and documents that are wrong."""

import codecs
import gzip
import json
from pathlib import Path

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


def took_s(**amounts):
    return document(took=[{**TOOK[0], **amounts}, *TOOK[1:]])


@pytest.fixture
def stages(tmp_path):
    """Return what reads a document's stages, by name."""

    def read(made):
        path = tmp_path / "workflow.json"
        path.write_bytes(made if isinstance(made, bytes) else json.dumps(made).encode())
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


def test_a_byte_order_mark_is_left_out(stages):
    assert stages(codecs.BOM_UTF8 + json.dumps(document()).encode()) == stages(document())


def test_long_ids_that_differ_at_their_end_are_tasks_of_their_own(stages):
    first, second = (f"{'q' * 300}{number}" for number in (1, 2))
    tasks = [{"name": "a", "id": first}, {"name": "b", "id": second, "parents": [first]}]
    found = stages(document(tasks, [{"id": name, "runtimeInSeconds": 1} for name in (first, second)]))
    assert found[second].parents == [first]


def test_a_workflow_is_a_workload_of_one_job(tmp_path):
    path = tmp_path / "workflow.json"
    path.write_text(json.dumps(document()))
    workload = workload_of(path, specs.machines("2x2c8g,disk=1G,net=1G", Parameters()))
    assert [stage.tasks for stage in workload.jobs[0].stages] == [1, 2, 1]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (b'{"workflow"', "not one JSON document (is it cut off?)"),
        (b'{"workflow": NaN}', ": not one JSON document: JSON is malformed: invalid character (byte 13); accepted"),
        (b'{"x": ' + b"[" * 100_000, ": not one JSON document: maximum recursion depth exceeded"),
        (b'{"workflow": {"tasks": 1}, "x": ' + b"[" * 100_000, ": field workflow.tasks: accepted: a list or null"),
        (b'{"workflow": {"tasks": [1]}, "x": ' + b"[" * 100_000, ": field workflow.tasks[0]: accepted: an object"),
        (gzip.compress(b"{}", mtime=0), ": this is gzip; accepted: the file that gunzip makes of it"),
        ("{}".encode("utf-16"), ": not UTF-8 text, from byte 0 on; accepted: one JSON document in UTF-8"),
        (b"[]", ": an empty list; accepted: one JSON object, with workflow, name"),
        (b"null", ": null; accepted: one JSON object, with workflow, name"),
        ({"workflow": {}}, "field workflow: no tasks; needed"),
        ({"workflow": {"specification": {"tasks": TASKS}}}, "field workflow: no execution"),
        (document([], []), "field workflow.specification.tasks: there are none"),
        (document(took=TOOK[1:]), "field workflow.specification.tasks[0].id: 's' is not in workflow.execution.tasks"),
        (document([*TASKS, CAT]), "field workflow.specification.tasks[4].id: 'c' stands twice"),
        (
            document([SPLIT, {**CAT, "parents": ["z"]}]),
            "tasks[0].children[0] (task 's'): there is no task 'a'; accepted",
        ),
        (
            document([SPLIT, *BLASTS, {**CAT, "parents": ["blast"]}]),
            "field workflow.specification.tasks[3].parents[0] (task 'c'): 2 tasks are called 'blast'; accepted: an id, "
            "or a name that only one task has",
        ),
        (document(took=[*TOOK, TOOK[0]]), "field workflow.execution.tasks[4].id: 's' stands twice; accepted"),
        (
            document(took=[*TOOK[1:], {"id": "s"}]),
            "field workflow.execution.tasks[3] (task 's'): nobody says what it took; needed: runtimeInSeconds",
        ),
        (
            took_s(runtimeInSeconds=-1),
            "field workflow.execution.tasks[0].runtimeInSeconds (task 's'): -1; accepted: a number, 0 or more",
        ),
        (
            took_s(runtimeInSeconds=2e9),
            "runtimeInSeconds (task 's'): 2000000000.0; accepted: a number, 1000000000 or less",
        ),
        (took_s(memoryInBytes=1e17), "memoryInBytes (task 's'): 1e+17; accepted: a number, 9000000000000000 or less"),
        (took_s(coreCount=1e13), "coreCount (task 's'): 10000000000000.0; accepted: a number, 9000000000000 or less"),
        (document([3]), "field workflow.specification.tasks[0]: 3; accepted: an object"),
        (document([{"parents": []}]), "field workflow.specification.tasks[0].id: '' is not in"),
        ({"workflow": {"tasks": [{"parents": []}]}}, "field workflow.tasks[0]: it has no id; accepted: id, or name"),
        ({"workflow": {"tasks": [{"name": "a"}] * 2}}, "field workflow.tasks[1].name: 'a' stands twice"),
    ],
)
def test_what_is_wrong_is_named_with_its_field(stages, made, said):
    with pytest.raises(TraceError) as refused:
        stages(made)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            document([{**SPLIT, "parents": ["c"]}, *TASKS[1:]]),
            "field workflow.specification.tasks[0] (task 's'): a cycle of parents: s -> a -> c -> s; accepted: no",
        ),
        (document([{**SPLIT, "parents": ["s"]}, *TASKS[1:]]), "tasks[0] (task 's'): a cycle of parents: s -> s;"),
        (took_s(coreCount=9), "field workflow.execution.tasks[0].coreCount (task 's'): a task fits no machine"),
        (
            document(took=[{**took, "coreCount": 9} if took["id"] in "ab" else took for took in TOOK]),
            "field workflow.execution.tasks[1].coreCount and workflow.execution.tasks[1].memoryInBytes (task 'a'): a",
        ),
    ],
)
def test_what_no_workload_can_be_made_of_is_named_as_the_document_has_it(tmp_path, made, said):
    path = tmp_path / "workflow.json"
    path.write_text(json.dumps(made))
    with pytest.raises(TraceError) as refused:
        workload_of(path, specs.machines("2x2c8g,disk=1G,net=1G", Parameters()))
    assert f"{path}: field " in str(refused.value)
    assert said in str(refused.value)


def test_a_long_cycle_is_cut_where_it_is_named(tmp_path):
    path = tmp_path / "workflow.json"
    tasks = [{"id": f"t{place}", "parents": [f"t{(place - 1) % 30}"], "runtime": 1} for place in range(30)]
    path.write_text(json.dumps({"workflow": {"tasks": tasks}}))
    with pytest.raises(TraceError, match=r"t\d+ -> \.\.\.; accepted: no cycle"):
        workload_of(path, specs.machines("2x2c8g,disk=1G,net=1G", Parameters()))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a file that never ends")
def test_a_document_that_does_not_end_is_refused_in_bounded_memory(monkeypatch):
    monkeypatch.setattr("lab.sim.files.wfformat.LONGEST_LINE", 1000)
    with pytest.raises(TraceError, match="/dev/zero: over 1000 bytes; accepted: at most as many"):
        list(wfformat_job(Path("/dev/zero")))

"""A user's own files: what is read, what is refused and in which words, and what becomes of it in a run."""

import gzip
import json
import os
import random
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from extender.cluster.ledger.layout import layout_of
from extender.cluster.resources import DIMENSIONS
from extender.errors import DovetailError, SettingsError, TraceError
from lab.errors import SpecError
from lab.sim import sweep
from lab.sim.commands import simulate
from lab.sim.engine.clock import empty_snapshot
from lab.sim.files.format import schema
from lab.sim.files.jobs import workload_of
from lab.sim.files.machines import machines_of
from lab.sim.runs import Run, inputs_of, perform, recording
from lab.sim.workloads.parameters import Parameters
from lab.sim.workloads.stages import table_of

EXAMPLES = Path(__file__).parents[4] / "examples" / "simulate"
MACHINES = {"name": "m", "count": 2, "allocatable": {"cpu": 4, "memory": "8Gi"}}
GPU = {
    "name": "g",
    "allocatable": {"cpu": 4, "memory": "8Gi", "nvidia.com/gpu": 2},
    "labels": {"zone": "b"},
    "taints": [{"key": "gpu", "effect": "NoSchedule"}],
}
STAGE = {"name": "s", "demand": {"cpu": 1}, "seconds": 10}


def job(**fields):
    return {"job": "a", "stages": [STAGE], **fields}


def stage(**fields):
    return job(stages=[STAGE | fields])


def pair(**fields):
    return {"job": "a", "stages": [STAGE, STAGE | {"name": "t"} | fields]}


def written(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def machines(tmp_path):
    return written(tmp_path / "machines.jsonl", MACHINES, GPU)


def replay(tmp_path, machines, policy, *jobs):
    path = written(tmp_path / "jobs.jsonl", *jobs)
    return perform(Run(str(path), str(machines), policy, 1), lambda *_: None)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            job(speed=1),
            "field speed: there is no such field; accepted: job, stages, arrives, queue, priority, gang, recurring",
        ),
        (job(recurring=""), "field recurring: ''; accepted: text of 1 or more characters"),
        (
            job(stages=[STAGE | {"input": {"from": "hdfs", "rate": 1}}]),
            "field stages[0].input.from: 'hdfs'; accepted: 'local', 'blocks', 'shuffle'",
        ),
        (job(stages=[]), "field stages: an empty list; accepted: a list of 1 or more items"),
        (job(recurring=7), "field recurring: 7; accepted: text or null"),
        (stage(cpu=1), "field stages[0].cpu: there is no such field; accepted: name, demand, seconds"),
        (stage(input={"rate": 1, "of": 2}), "field stages[0].input.of: there is no such field; accepted: rate, from"),
        (stage(seconds=-1), "field stages[0].seconds"),
        (stage(seconds=1e-300), "field stages[0].seconds: 1e-300; accepted: a number, 0.001 or more"),
        (stage(demand={"memory": 1, "cpu": True}), "field stages[0].demand.cpu: true; accepted: a number or text"),
        (stage(nodeSelector={"a": "b", "zone": 1}), "field stages[0].nodeSelector.zone: 1; accepted: text"),
        (stage(tasks=0), "field stages[0].tasks"),
        (stage(tasks=2.0), "field stages[0].tasks: 2.0; accepted: a whole number"),
        (stage(demand={"cpu": -1}), "field stages[0].demand.cpu: '-1' is negative"),
        (stage(demand={"cpu": "lots"}), "field stages[0].demand.cpu: 'lots' is not a quantity; accepted"),
        (stage(demand={"gpu": 1}), "field stages[0].demand.gpu: there is no such resource; accepted: cpu, memory"),
        (stage(demand={"amd.com/gpu": 1}), "field stages[0].demand.amd.com/gpu: no machine offers it; machines offer"),
        (stage(demand={"network-in": 1}), "field stages[0].demand.network-in: follows from what a task reads"),
        (stage(demand={"cpu": 5}), "it may go to: it needs cpu 5; accepted: at most cpu 4"),
        (stage(demand={"cpu": 1, "memory": "9Gi"}), "it needs cpu 1, memory 9Gi; accepted: at most memory 8Gi"),
        (stage(demand={"memory": 8 * 2**30 + 1}), "a task fits no machine that it may go to: it needs memory"),
        (
            stage(demand={"nvidia.com/gpu": 1}),
            "it needs nvidia.com/gpu 1; its nodeSelector, or a taint that it does not tolerate, keeps it from",
        ),
        (
            stage(demand={"cpu": 2, "memory": "3Gi"}, tasks=5) | {"gang": True},
            "5 tasks of a gang start together, and all machines that they may go to hold 4 at once",
        ),
        (
            stage(nodeSelector={"zone": "x"}),
            "field stages[0]: no machine has the labels zone=x; accepted: zone=b",
        ),
        (stage(seconds=[1, 2, 3]), "field stages[0].seconds: 3 numbers; accepted: one, or one for each of 1 tasks"),
        (stage(parents=["t"]), "field stages[0].parents[0]: job 'a' has no stage 't'; accepted: s"),
        (stage(parents=["s"]), "field stages[0]: a cycle of parents: s -> s; accepted: no cycle"),
        (job(stages=[STAGE] * 100_001), "field stages: a list of 100001; accepted: a list of 100000 or less items"),
        (job(stages=[STAGE, STAGE]), "field stages[1].name: 's' stands twice in job 'a'; accepted: each name once"),
        (stage(input={"rate": "1M", "from": "shuffle"}), "shuffle needs parents"),
        (
            stage(input={"rate": "1M", "from": "blocks", "nodes": [["q"]]}),
            "there is no machine 'q' in the machines file; accepted: m-0, m-1",
        ),
        (stage(oneToOne=["t"]), "field stages[0].oneToOne[0]: job 'a' has no stage 't'; accepted: s"),
        (stage(oneToOne=["s"]), "field stages[0]: a cycle of parents: s -> s; accepted: no cycle"),
        (pair(parents=["s", "s"]), "field stages[1].parents[1]: 's' stands twice; accepted: once"),
        (pair(oneToOne=["s", "s"]), "field stages[1].oneToOne[1]: 's' stands twice; accepted: once"),
        (pair(oneToOne=["s"], parents=["s"]), "field stages[1].oneToOne[0]: 's' stands in parents too; accepted"),
        (
            pair(oneToOne=["s"], tasks=2),
            "field stages[1].oneToOne[0]: 's' has 1 tasks, this stage 2; accepted: as many",
        ),
        (pair(oneToOne=["s"]) | {"gang": True}, "field stages[1].oneToOne: the job is a gang"),
        (
            pair(oneToOne=["s"], input={"rate": "1M", "from": "shuffle"}),
            "field stages[1].oneToOne: it reads from shuffle; accepted: local, or no input",
        ),
    ],
)
def test_a_mistake_in_a_job_names_file_line_field_and_what_is_accepted(tmp_path, machines, line, said):
    path = written(tmp_path / "jobs.jsonl", {"job": "first", "stages": [STAGE]}, line)
    with pytest.raises(TraceError) as refused:
        workload_of(path, machines_of(machines))
    assert str(refused.value).startswith(f"{path}, line 2")
    assert said in str(refused.value)


def test_a_key_that_stands_twice_is_refused(tmp_path, machines):
    path = tmp_path / "jobs.jsonl"
    path.write_text(json.dumps(job()).replace('"seconds": 10', '"seconds": 10, "seconds": 20') + "\n")
    with pytest.raises(TraceError, match="line 1: the key 'seconds' stands twice in one object; accepted: once"):
        workload_of(path, machines_of(machines))


@pytest.mark.parametrize("number", ["9" * 5000, "1e400"])
def test_a_number_that_is_too_large_to_be_one_is_refused_with_its_field(tmp_path, machines, number):
    path = tmp_path / "jobs.jsonl"
    path.write_text(json.dumps(job()).replace('"seconds": 10', '"seconds": ' + number) + "\n")
    said = r"line 1: field stages\[0\]\.seconds: inf; accepted: a finite number"
    with pytest.raises(TraceError, match=said):
        workload_of(path, machines_of(machines))


def test_places_for_pods_are_read_as_nodes_have_them_and_do_not_count(tmp_path):
    allocatable = {"cpu": 4, "pods": "110", "attachable-volumes-aws-ebs": 39}
    path = written(tmp_path / "machines.jsonl", {"name": "m", "allocatable": allocatable})
    made = machines_of(path)
    assert (made.axis, made.name) == (DIMENSIONS, "machines.jsonl (1; places for pods do not count)")


def test_machines_that_do_not_limit_a_disk_have_as_much_where_shares_are_counted_as_in_a_cluster(tmp_path):
    # Of disk-read the machines declare 100 and 300, and the third counts like their mean: 600 in all.
    declared = [{"disk-read": 100}, {"disk-read": 300, "network-in": 50}, {"pods": 9}]
    lines = [{"name": f"m{row}", "allocatable": {"cpu": 4, **more}} for row, more in enumerate(declared)]
    found = machines_of(written(tmp_path / "machines.jsonl", *lines))
    layout = layout_of({node.name: node for node in found.nodes})
    seen = empty_snapshot(found.capacity).layout
    assert found.total.tolist() == layout.total.tolist()[:6] == seen.total.tolist() == [12000, 0, 600, 0, 150, 0]
    assert seen.capacity.tolist() == layout.capacity[:, :6].tolist()
    work = stage(demand={"cpu": 1}, seconds=10, input={"from": "local", "rate": 60})
    table = table_of(workload_of(written(tmp_path / "jobs.jsonl", work), found), found)
    assert table.work.tolist() == [pytest.approx(10 * (1 / 12 + 60 / 600))]


def test_machines_have_whole_devices(tmp_path):
    path = written(tmp_path / "machines.jsonl", {"name": "m", "allocatable": {"cpu": 4, "nvidia.com/gpu": 1.5}})
    with pytest.raises(
        TraceError, match=r"line 1: field allocatable\.nvidia\.com/gpu: 1\.5 is no whole number; accepted"
    ):
        machines_of(path)


def test_a_stage_that_no_machine_allows_is_told_what_there_is(tmp_path):
    shape = {"name": "m", "allocatable": {"cpu": 4, "memory": "8Gi"}, "labels": {"zone": "a"}}
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    machines = machines_of(written(tmp_path / "machines.jsonl", shape | {"taints": [taint]}))
    elsewhere = written(tmp_path / "elsewhere.jsonl", stage(nodeSelector={"zone": "b"}))
    with pytest.raises(TraceError, match="no machine has the labels zone=b; accepted: zone=a"):
        workload_of(elsewhere, machines)
    there = written(tmp_path / "there.jsonl", stage(nodeSelector={"zone": "a"}))
    with pytest.raises(TraceError, match="a taint that it does not tolerate; taints there are: gpu=yes:NoSchedule"):
        workload_of(there, machines)


def test_a_task_of_which_each_amount_is_on_some_machine_but_all_on_none_is_refused(tmp_path):
    machines = written(
        tmp_path / "machines.jsonl",
        {"name": "cores", "allocatable": {"cpu": 8, "memory": "8Gi"}},
        {"name": "memory", "allocatable": {"cpu": 4, "memory": "16Gi"}},
    )
    path = written(tmp_path / "jobs.jsonl", stage(demand={"cpu": 8, "memory": "16Gi"}))
    with pytest.raises(TraceError, match="cpu 8, memory 16Gi; accepted: what one machine has, as each of these is on"):
        workload_of(path, machines_of(machines))


def test_what_starts_at_once_starts_at_0_in_json(tmp_path, machines):
    made = replay(tmp_path, machines, "dovetail", job())
    assert json.dumps(made.jobs[0].started) == "0.0"


def test_tasks_that_wait_one_to_one_start_as_theirs_end(tmp_path, machines):
    maps = {"name": "map", "demand": {"cpu": 1}, "tasks": 3, "seconds": [4, 1, 2]}
    sorts = {"name": "sort", "demand": {"cpu": 1}, "tasks": 3, "seconds": 5, "oneToOne": ["map"]}
    done = replay(tmp_path, machines, "dovetail", {"job": "a", "stages": [sorts, maps]})
    assert done.tasks.started.tolist() == [0, 0, 0, 6, 3, 3]  # at heartbeats of 3 seconds


def test_a_name_that_stands_twice_is_refused_with_the_line_where_it_stood_first(tmp_path, machines):
    path = written(tmp_path / "jobs.jsonl", job(), job())
    with pytest.raises(
        TraceError, match=r"line 2: field job: 'a' is the name of a job of .*, line 1 already; accepted: each name once"
    ):
        workload_of(path, machines_of(machines))
    with pytest.raises(
        TraceError,
        match=r"line 2: field name: 'm-0' is the name of a machine of .*, line 1 already; accepted: each name once",
    ):
        machines_of(written(tmp_path / "twice.jsonl", MACHINES, MACHINES))


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_what_a_job_is_a_run_of_is_read_and_most_run_once(tmp_path, machines, suffix):
    path = tmp_path / f"jobs.{suffix}"
    path.write_text("job,seconds,cpu,recurring\na,10,1,nightly\nb,10,1,\n")
    if suffix == "jsonl":
        written(path, job(recurring="nightly"), job() | {"job": "b"})
    assert [one.recurring for one in workload_of(path, machines_of(machines)).jobs] == ["nightly", ""]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"job": "a", "stages": [', "the file ends within this line"),
        ('{"job": "a", "arrives": NaN}\n', "not one JSON object"),
        ('{"job": ' + "[" * 100_000 + "\n", "line 1: field job: accepted: text"),
        ("[1]\n", "line 1: a list of 1; accepted: one JSON object on each line, with job, stages"),
        ("[\n" + json.dumps(job()) + "\n]\n", "line 1: accepted: one JSON object on each line, with job, stages"),
        ("", "has no jobs"),
    ],
)
def test_a_file_that_is_cut_off_or_no_json_is_refused(tmp_path, machines, text, said):
    path = tmp_path / "jobs.jsonl"
    path.write_text(text)
    with pytest.raises(TraceError) as refused:
        workload_of(path, machines_of(machines))
    assert said in str(refused.value)


def test_whatever_is_damaged_in_a_good_file_is_read_or_refused_in_our_words(tmp_path):
    """A byte of the example is replaced, or the file ends early: 400 times, drawn by a seed."""
    good = (EXAMPLES / "workload.jsonl").read_bytes()
    draw, cluster, path = random.Random(7), machines_of(EXAMPLES / "machines.jsonl"), tmp_path / "jobs.jsonl"
    texts = []
    for _ in range(400):
        place = draw.randrange(len(good))
        damaged = good[:place] if draw.random() < 0.3 else good[:place] + draw.randbytes(1) + good[place + 1 :]
        path.write_bytes(damaged)
        try:
            workload_of(path, cluster)
        except TraceError as refused:
            texts.append(str(refused))
    assert all(text.startswith(str(path)) for text in texts)
    assert 100 < len(texts) < 400


def test_csv_has_a_job_of_one_stage_in_each_line(tmp_path, machines):
    path = tmp_path / "jobs.csv"
    path.write_text("job,queue,tasks,seconds,cpu,memory\na,a,3,10,500m,1Gi\nb,,1,5,2,\n")
    jobs = workload_of(path, machines_of(machines)).jobs
    assert [(one.name, one.queue, one.stages[0].tasks) for one in jobs] == [("a", "a", 3), ("b", "default", 1)]
    assert jobs[0].stages[0].demand.tolist()[:2] == [500, 2**30]
    assert jobs[1].stages[0].demand.tolist()[:2] == [2000, 0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("job,seconds,cpu\na,10,1", "line 2: the file ends within this line"),
        ("job,cpu\na,1\n", "line 1: no column 'seconds'"),
        ("job,seconds,cpu\na,10\n", "line 2: 2 fields; accepted: 3"),
        ("job,seconds,cpu\na,nan,1\n", "line 2: field seconds: 'nan'; accepted: a number"),
        ("job,seconds,cpu\na,1_0,1\n", "line 2: field seconds: '1_0'; accepted: a number"),
        ("job,arrives,seconds\na,\u0661,1\n", "line 2: field arrives: '\u0661'; accepted: a number"),
        ("job,seconds,cpu\na,,1\n", "line 2: field seconds: it is empty; needed: job, seconds"),
        ("job,seconds,cpu,tasks\na,1,1,0\n", "line 2: field tasks: '0'; accepted: a whole number, 1 or more"),
        ("job,seconds,cpu\na,1,lots\n", "line 2: field cpu: 'lots' is not a quantity"),
        ("job,seconds,cpu\na,1,900\n", "line 2: field cpu: a task fits no machine that it may go to"),
        ("job,seconds,gpus\na,1,1\n", "line 1: column 'gpus': there is no such column; accepted: job, queue"),
        ("job,seconds,cpu,cpu\na,1,1,1\n", "line 1: column 'cpu' stands twice; accepted: once"),
        ("job,seconds,cpu\n\n\na,10\n", "line 4: 2 fields; accepted: 3"),
        ("\ufeffjob,seconds,cpu\na,10\n", "line 2: 2 fields; accepted: 3"),
        ("", "jobs.csv has no jobs; needed: a line for each"),
    ],
)
def test_a_mistake_in_csv_names_the_line(tmp_path, machines, text, said):
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    with pytest.raises(TraceError) as refused:
        workload_of(path, machines_of(machines))
    assert said in str(refused.value)


def test_a_compressed_csv_file_is_no_text_and_not_one_that_is_cut_off(tmp_path, machines):
    path = tmp_path / "jobs.csv"
    path.write_bytes(gzip.compress(b"job,seconds,cpu\na,10,1\n", mtime=0))
    with pytest.raises(TraceError, match="line 1: this is gzip; accepted: the file that gunzip makes of it"):
        workload_of(path, machines_of(machines))


def test_a_byte_that_is_no_text_is_named_by_its_line(tmp_path, machines):
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"job,seconds,cpu\na,10,1\n\xe9,10,1\n")
    with pytest.raises(TraceError, match="line 3: not UTF-8 text, from byte 0 on; accepted: CSV in UTF-8"):
        workload_of(path, machines_of(machines))


@pytest.mark.parametrize("policy", ["kube-default", "extender", "dovetail"])
def test_gpus_taints_and_selectors_count_for_every_policy_that_takes_files(tmp_path, machines, policy):
    """Machines 0 and 1 have no GPU, 2 has two and a taint. Four tasks of one GPU, 10 s each: two at a time, 20 s."""
    tolerant = [{"key": "gpu", "operator": "Exists"}]
    trained = STAGE | {"tasks": 4, "demand": {"cpu": "100m", "nvidia.com/gpu": 1}, "tolerations": tolerant}
    plain = STAGE | {"tasks": 30, "demand": {"cpu": 1}}
    bound = STAGE | {"nodeSelector": {"zone": "b"}, "tolerations": tolerant}
    outcome = replay(
        tmp_path,
        machines,
        policy,
        {"job": "bound", "stages": [bound]},
        {"job": "gpu", "stages": [trained]},
        {"job": "plain", "stages": [plain]},
    )
    ran = [outcome.tasks.node[outcome.tasks.stage == number] for number in range(3)]
    assert set(ran[0].tolist()) == {2}
    assert set(ran[1].tolist()) == {2}
    assert set(ran[2].tolist()) == {0, 1}
    gpu = outcome.tasks.stage == 1
    assert sorted((outcome.tasks.ended - outcome.tasks.started)[gpu].round().tolist()) == [10] * 4
    assert len(np.unique(outcome.tasks.started[gpu])) == 2


def test_tasks_of_a_gang_start_together_though_one_would_fit_before(tmp_path, machines):
    """Eight cores without a taint. The first takes 6 for 20 s; a gang of 4 waits, else 2 would start."""
    long = {"job": "long", "arrives": 0, "stages": [STAGE | {"tasks": 6, "seconds": 20}]}
    gang = {"job": "team", "arrives": 3, "gang": True, "stages": [STAGE | {"tasks": 4}]}
    together = replay(tmp_path, machines, "dovetail", long, gang)
    alone = replay(tmp_path, machines, "dovetail", long, gang | {"gang": False})
    assert len(set(together.tasks.started[6:].tolist())) == 1
    assert together.tasks.started[6] >= 20
    assert len(set(alone.tasks.started[6:].tolist())) == 2


@pytest.mark.parametrize("policy", ["kube-default", "dovetail"])
def test_the_higher_priority_goes_first(tmp_path, machines, policy):
    """Both wait for the eight cores that are taken for 20 s; who came later has the higher priority."""
    full = {"job": "full", "stages": [STAGE | {"tasks": 8, "seconds": 20}]}
    low = {"job": "low", "arrives": 3, "stages": [STAGE | {"tasks": 8}]}
    high = {"job": "high", "arrives": 6, "priority": 5, "stages": [STAGE | {"tasks": 8}]}
    outcome = replay(tmp_path, machines, policy, full, low, high)
    started = {run.name: run.started for run in outcome.jobs}
    assert started["full"] < started["high"] < started["low"]


def test_what_is_known_of_durations_is_for_the_scheduler_alone(tmp_path, machines):
    path = written(
        tmp_path / "jobs.jsonl", *(stage(tasks=4, seconds=10, expected=30) | {"job": f"j{k}"} for k in range(40))
    )
    for know in (1.0, 0.5, 0.0):
        run = Run(str(path), str(machines), "dovetail", 1, know=know)
        expected = [job.stages[0].duration for job in inputs_of(run, Parameters())[0].jobs]
        assert expected == [job.stages[0].duration for job in inputs_of(run, Parameters())[0].jobs]
        if know == 0.5:
            assert 15 <= min(expected) < 18 < 30 < 50 < max(expected) <= 60
            assert abs(np.median(np.log2(np.array(expected) / 30))) < 0.3  # as often too long as too short
        else:
            assert expected == [30.0] * 40
        seen = perform(run, lambda *_: None)
        assert (seen.tasks.ended - seen.tasks.started).round(6).tolist() == [10.0] * 160


def test_who_knows_nothing_of_durations_expects_the_mean_of_all_tasks(tmp_path, machines):
    short, long = (
        {"job": name, "stages": [STAGE | told]}
        for name, told in (("a", {"tasks": 3, "seconds": 10}), ("b", {"tasks": 1, "seconds": 50}))
    )
    path = written(tmp_path / "jobs.jsonl", short, long)
    jobs = inputs_of(Run(str(path), str(machines), "dovetail", 1, know=0.0), Parameters())[0].jobs
    assert [job.stages[0].duration for job in jobs] == [20.0, 20.0]


@pytest.mark.parametrize("know", [-0.1, 1.5, float("nan")])
def test_a_part_of_knowledge_outside_0_to_1_is_refused(tmp_path, machines, know):
    path = written(tmp_path / "jobs.jsonl", stage(tasks=1, seconds=10))
    with pytest.raises(DovetailError, match="accepted: 0 to 1"):
        perform(Run(str(path), str(machines), "dovetail", 1, know=know), lambda *_: None)


def test_the_examples_are_what_the_schemas_say():
    for name, file in (("workload", "workload.jsonl"), ("machines", "machines.jsonl")):
        for line in (EXAMPLES / file).read_text().splitlines():
            jsonschema.validate(json.loads(line), schema(name))
    for wrong in (job(speed=1), pair(parents=["s", "s"])):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema("workload"))


def run_command(*arguments):
    return CliRunner().invoke(simulate, arguments)


FILES = ("--workload", str(EXAMPLES / "workload.jsonl"), "--machines", str(EXAMPLES / "machines.jsonl"))


def test_where_one_policy_fails_the_others_are_shown_and_it_is_named(monkeypatch):
    def failing(run, tell):
        if run.policy == "kube-default":
            raise DovetailError("gangs hold each other's room")
        return perform(run, tell)

    monkeypatch.setattr("lab.sim.runs.perform", failing)
    result = run_command(*FILES, "--policy", "kube-default,dovetail", "--processes", "1", "--json")
    assert [one["policy"] for one in json.loads(result.stdout.splitlines()[-1])["runs"]] == ["dovetail"]
    assert isinstance(result.exception, DovetailError)
    assert str(result.exception) == "kube-default: gangs hold each other's room\nwhat is shown is of the others"
    alone = run_command(*FILES, "--policy", "kube-default", "--processes", "1", "--json")
    assert "runs" not in alone.stdout
    assert str(alone.exception) == "kube-default: gangs hold each other's room"


def test_the_example_with_gpus_and_two_queues_is_simulated_as_the_guide_says():
    settings = ("--settings", str(EXAMPLES / "settings.yaml"), "--set", "policy.fairness=0,0.5")
    result = run_command(*FILES, *settings, "--policy", "kube-default,dovetail", "--processes", "1", "--json")
    assert result.exit_code == 0, result.output
    runs = json.loads(result.stdout.splitlines()[-1])["runs"]
    assert [run["policy"] for run in runs] == [
        "kube-default",
        "dovetail policy.fairness=0",
        "dovetail policy.fairness=0.5",
    ]
    for run in runs:
        assert {one["name"]: one["tasks"] for one in run["jobs"]} == {
            "train-1": 4,
            "train-2": 24,
            "nightly": 70,
            "sweep": 24,
        }
        assert set(run["series"]["queues"]) == {"research", "product"}
        assert 0 < max(run["series"]["used"]["nvidia.com/gpu"]) <= 1


def test_the_setting_rank_says_how_far_graphene_follows_the_order_of_a_dag(tmp_path):
    # Two machines of two cores. Packing alone starts the eight wide tasks before the chain: 8 / 2 x 4 + 10 + 10 = 36 s.
    # The order starts the chain at once: it has one machine until 20 s, the other runs five wide tasks by then, and
    # both run the other three from 20 to 28 s.
    wide, first = job_stage("wide", 8, 4, cpu=2), job_stage("first", 1, 10, cpu=1)
    last = job_stage("last", 1, 10, cpu=2, parents=["first"])
    file = tmp_path / "dag.jsonl"
    file.write_text(json.dumps({"job": "etl", "stages": [wide, first, last]}) + "\n")
    made = ("--workload", str(file), "--machines", "2x2c8g,disk=100M,net=100M", "--heartbeat", "0", "--processes", "1")
    result = run_command(*made, "--policy", "dovetail,graphene", "--set", "policy.rank=0,1", "--json")
    assert result.exit_code == 0, result.output
    runs = json.loads(result.stdout.splitlines()[-1])["runs"]
    assert {run["policy"]: run["makespan"] for run in runs} == {
        "dovetail policy.rank=0": 36.0,
        "dovetail policy.rank=1": 36.0,  # it knows no orders
        "graphene policy.rank=0": 36.0,
        "graphene policy.rank=1": 28.0,
    }


def job_stage(name, tasks, seconds, *, cpu, parents=()):
    demand = {"cpu": cpu, "memory": "1Gi"}
    return {"name": name, "tasks": tasks, "seconds": seconds, "demand": demand, "parents": list(parents)}


def test_a_policy_that_does_not_see_gpus_is_refused_before_anything_runs():
    result = run_command(*FILES, "--policy", "dovetail,drf")
    assert result.exit_code == 2
    assert "'drf' does not see resources beyond cpu" in result.output


def test_what_was_recorded_is_refused_before_anything_runs_where_nothing_was():
    result = run_command(*FILES, "--policy", "dovetail,recorded", "--json")
    assert result.exit_code == 2
    assert "'recorded' is what was done; needed: --workload recording:FILE and --machines recorded" in result.output
    assert '"runs"' not in result.output


def test_a_change_of_the_policy_is_refused_where_nobody_goes_by_it():
    result = run_command(*FILES, "--policy", "kube-default", "--set", "policy.fairness=0,0.5")
    assert result.exit_code == 2
    assert "policy.fairness=0,0.5: no policy that runs goes by it; needed: dovetail or graphene" in result.output


def test_a_recording_without_a_file_is_refused():
    with pytest.raises(SpecError, match="workload recording: names no file; accepted: recording:FILE"):
        recording("recording:")


@pytest.mark.parametrize("of", ["--workload=", "--workload=recording:", "--machines="])
def test_a_pipe_is_refused_as_each_run_would_read_it_anew(tmp_path, of):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    result = run_command(*FILES, f"{of}{pipe}")
    assert result.exit_code == 2
    assert f"{pipe} is a pipe, which can be read once only; accepted: a file" in result.output


@pytest.mark.parametrize("number", ["nan", "inf"])
@pytest.mark.parametrize("option", ["--know", "--know-demands", "--tail", "--heartbeat", "--loss"])
def test_what_is_no_finite_number_is_wrong_usage(option, number):
    result = run_command(*FILES, option, number)
    assert result.exit_code == 2
    assert f"Invalid value for '{option}'" in result.output


def test_settings_may_come_through_a_pipe():
    text = (EXAMPLES / "settings.yaml").read_text()
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    assert yaml.safe_load(sweep.documents(Path(f"/dev/fd/{reading}"), [])[""]) == yaml.safe_load(text)
    os.close(reading)


def test_the_schema_is_printed():
    assert json.loads(run_command("--schema", "machines").output) == schema("machines")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("policy.fairnes=0.5", "policy.fairnes: 0.5; there is no such setting; accepted: rule"),
        ("policy.fairness=2", "policy.fairness: 2"),
        ("policy.fairness", "accepted: KEY=VALUE"),
        ("order.by=x", "order is not a mapping"),
        ("policy.fairness=[0", "--set policy.fairness=[0 cannot be read as YAML: line 1, column 3: while parsing"),
    ],
)
def test_a_key_that_settings_do_not_have_is_refused_by_name(change, said, tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text((EXAMPLES / "settings.yaml").read_text() + "order: gates\n")
    with pytest.raises(SettingsError) as refused:
        sweep.documents(path, [change])
    assert said in str(refused.value)


def test_a_key_that_is_set_twice_is_refused_as_only_one_would_count():
    with pytest.raises(SettingsError, match=r"--set policy\.fairness: it is set twice; accepted: once, with one or"):
        sweep.documents(None, ["policy.fairness=0", "policy.kappa=1", "policy.fairness=0.5"])


def test_the_weights_of_the_settings_are_those_of_the_run(tmp_path, machines):
    """Two queues ask for all eight cores again and again; the one of weight 3 gets three times as much at first."""
    lines = [
        {"job": name, "queue": name, "stages": [STAGE | {"tasks": 60, "seconds": 100}]} for name in ("heavy", "light")
    ]
    path = written(tmp_path / "jobs.jsonl", *lines)
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        "apiVersion: dovetail.dev/v1alpha1\nkind: DovetailConfiguration\n"
        "queues: [{name: light}, {name: heavy, weight: 3}]\n"
    )
    text = sweep.documents(settings, [])[""]
    outcome = perform(Run(str(path), str(machines), "dovetail", 1, document=text), lambda *_: None)
    first = outcome.tasks.started == outcome.tasks.started.min()
    heavy, light = (int((first & (outcome.tasks.stage == number)).sum()) for number in (0, 1))
    assert (light, heavy) == (2, 6)


def test_two_machines_on_two_racks_are_enough(tmp_path):
    shape = {"allocatable": {"cpu": 4, "memory": "16Gi"}}
    machines = written(
        tmp_path / "machines.jsonl", *(shape | {"name": name, "rack": f"rack-{name}"} for name in ("a", "b"))
    )
    path = written(tmp_path / "jobs.jsonl", {"job": "x", "stages": [STAGE | {"seconds": 5}]})
    outcome = perform(Run(str(path), str(machines), "dovetail", 1), lambda *_: None)
    assert np.isfinite(outcome.tasks.ended).all()


def test_a_task_that_memory_kills_for_ever_is_named(tmp_path):
    """It uses 24 GiB and declares less than 16: the emptiest machine, or the first, has too little again and again."""
    machines = written(
        tmp_path / "machines.jsonl",
        {"name": "small", "count": 4, "allocatable": {"cpu": 16, "memory": "16Gi"}},
        {"name": "big", "count": 2, "allocatable": {"cpu": 16, "memory": "64Gi"}},
    )
    stage = {"name": "s", "tasks": 2, "seconds": 30, "demand": {"cpu": 1, "memory": "24Gi"}}
    path = written(tmp_path / "jobs.jsonl", {"job": "x", "stages": [stage]})
    with pytest.raises(DovetailError, match=r"x/s: memory has killed one of its tasks 1000 times"):
        perform(Run(str(path), str(machines), "first-fit", 7, know_demands=0.25), lambda *_: None)


@pytest.mark.parametrize("policy", ["dovetail", "drf", "slot-fair", "kube-default"])
def test_a_queue_of_weight_0_gets_what_others_leave(tmp_path, policy):
    machines = written(tmp_path / "machines.jsonl", {"name": "m", "allocatable": {"cpu": 8, "memory": "32Gi"}})
    lines = [
        {"job": name, "queue": name, "stages": [STAGE | {"tasks": 16, "seconds": 100}]} for name in ("batch", "prod")
    ]
    path = written(tmp_path / "jobs.jsonl", *lines)
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        "apiVersion: dovetail.dev/v1alpha1\nkind: DovetailConfiguration\n"
        "queues: [{name: batch, weight: 0}, {name: prod}]\n"
    )
    text = sweep.documents(settings, [])[""]
    outcome = perform(Run(str(path), str(machines), policy, 1, document=text), lambda *_: None)
    if policy in ("dovetail", "drf"):
        batch, prod = (outcome.tasks.started[outcome.tasks.stage == number] for number in (0, 1))
        assert batch.min() >= prod.max()
    assert np.isfinite(outcome.tasks.ended).all()


@pytest.mark.parametrize(
    ("least", "expected"),
    [
        (0, {"batch": 4, "adhoc": 2, "nightly": 2}),
        (0.375, {"batch": 4, "adhoc": 1, "nightly": 3}),
    ],
)
def test_queues_get_what_their_parents_and_minimums_say(tmp_path, least, expected):
    """Three queues ask for all eight cores; two of them divide the half of their parent."""
    machines = written(tmp_path / "machines.jsonl", MACHINES)
    lines = [
        {"job": name, "queue": name, "stages": [STAGE | {"tasks": 60, "seconds": 100}]}
        for name in ("adhoc", "batch", "nightly")
    ]
    path = written(tmp_path / "jobs.jsonl", *lines)
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        "apiVersion: dovetail.dev/v1alpha1\nkind: DovetailConfiguration\nqueues:\n"
        "  - {name: batch}\n  - {name: reports}\n  - {name: adhoc, parent: reports}\n"
        f"  - {{name: nightly, parent: reports, minimumShare: {least}}}\n"
    )
    text = sweep.documents(settings, [])[""]
    outcome = perform(Run(str(path), str(machines), "dovetail", 1, document=text), lambda *_: None)
    first = outcome.tasks.started == outcome.tasks.started.min()
    names = [line["queue"] for line in lines]
    assert {name: int((first & (outcome.tasks.stage == row)).sum()) for row, name in enumerate(names)} == expected


def test_a_heavy_tail_is_the_same_for_every_policy_and_no_scheduler_expects_it(tmp_path, machines):
    path = written(tmp_path / "jobs.jsonl", stage(tasks=2000, seconds=10))
    runs = [Run(str(path), str(machines), "dovetail", seed, tail=1.5) for seed in (1, 2)]
    stages = [inputs_of(run, Parameters())[0].jobs[0].stages[0] for run in runs]
    again = inputs_of(replace(runs[0], policy="kube-default"), Parameters())[0].jobs[0].stages[0]
    assert (stages[0].durations == again.durations).all()
    assert (stages[0].durations != stages[1].durations).any()
    assert [one.duration for one in stages] == [10, 10]
    # Pareto of shape 1.5 and mean 10: none below 10 / 3, the median is 2 ** (2 / 3) of that.
    for one in stages:
        assert one.durations.min() >= 10 / 3
        assert np.median(one.durations) == pytest.approx(10 / 3 * 2 ** (2 / 3), rel=0.05)
        assert one.durations.max() > 100


def test_a_heavy_tail_lasts_in_the_run(tmp_path, machines):
    path = written(tmp_path / "jobs.jsonl", stage(tasks=40, seconds=10))
    run = Run(str(path), str(machines), "dovetail", 1, tail=1.2)
    seen, drawn = perform(run, lambda *_: None).tasks, inputs_of(run, Parameters())[0].jobs[0].stages[0].durations
    assert (seen.ended - seen.started).round(6).tolist() == drawn.round(6).tolist()


def test_what_is_drawn_does_not_go_by_the_order_of_the_lines(tmp_path):
    machines = written(tmp_path / "machines.jsonl", MACHINES)
    reading = STAGE | {"tasks": 3, "input": {"rate": 1, "from": "blocks"}}
    lines = [{"job": name, "queue": queue, "stages": [reading]} for name, queue in ("ax", "by", "cx")]
    drawn = []
    for ordered in (lines, lines[::-1]):
        path = written(tmp_path / "jobs.jsonl", *ordered)
        run = Run(str(path), str(machines), "kube-default", 1, know=0.5, know_demands=0.5, tail=2.0)
        outcome = perform(run, lambda *_: None).to_dict()
        drawn.append({part: outcome[part] for part in ("jobs", "tasks", "locality", "makespan")})
    assert drawn[0] == drawn[1]


def test_a_tail_without_a_mean_is_refused(tmp_path, machines):
    path = written(tmp_path / "jobs.jsonl", job())
    for shape in (1.0, float("nan"), float("inf")):
        with pytest.raises(DovetailError, match=r"tail: .*; accepted: a number above 1"):
            perform(Run(str(path), str(machines), "dovetail", 1, tail=shape), lambda *_: None)


@pytest.mark.parametrize(("order", "first"), [("fifo", "long"), ("fair", "short")])
def test_in_a_fifo_queue_jobs_start_in_the_order_of_arrival(tmp_path, machines, order, first):
    # Both want all of the machines; the second has far less to do, so a fair queue lets it go first.
    lines = [
        {"job": name, "queue": "a", "arrives": arrives, "stages": [STAGE | {"tasks": tasks, "seconds": seconds}]}
        for name, arrives, tasks, seconds in (("before", 0, 200, 10), ("long", 1, 200, 50), ("short", 2, 2, 5))
    ]
    path = written(tmp_path / "jobs.jsonl", *lines)
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        "apiVersion: dovetail.dev/v1alpha1\nkind: DovetailConfiguration\n"
        f"queues: [{{name: a, policy: {order}}}, {{name: b}}]\n"
    )
    text = sweep.documents(settings, [])[""]
    jobs = {
        job.name: job
        for job in perform(Run(str(path), str(machines), "dovetail", 1, document=text), lambda *_: None).jobs
    }
    second = "short" if first == "long" else "long"
    assert jobs["before"].started <= jobs[first].started < jobs[second].started


# ---- seconds by wave, and moves between jobs ----

EXECUTORS = {"name": "e", "count": 2, "allocatable": {"cpu": 1}, "moveSeconds": 2}
WAVES = {"fresh": {"1": 5, "2": 7}, "first": {"1": 3, "2": 4}, "rest": {"1": 1, "2": 2}}


@pytest.fixture
def executors(tmp_path):
    return written(tmp_path / "executors.jsonl", EXECUTORS)


def one_of(name, **fields):
    """Return a job of one stage whose tasks take a core each."""
    return {"job": name, "stages": [STAGE | {"seconds": WAVES} | fields]}


def test_waves_and_moves_count_as_tasks_start_one_after_the_other(tmp_path, executors):
    # The first machine takes 2 s to come and 5 s fresh, alone; with the second they are two: 2 + 7 s. At 9, on two, the
    # third task takes 2 s as one of the rest. At 12 the next stage begins: 4 s for each first task.
    after = STAGE | {"name": "t", "tasks": 2, "seconds": WAVES, "parents": ["s"]}
    one = {"job": "a", "stages": [STAGE | {"tasks": 3, "seconds": WAVES}, after]}
    outcome = replay(tmp_path, executors, "first-fit", one)
    assert outcome.tasks.started.tolist() == [0, 0, 9, 12, 12]  # steps are three seconds apart
    assert outcome.tasks.ended.tolist() == [7, 9, 11, 16, 16]


def test_the_mean_if_a_job_had_all_machines_is_expected_and_the_least_counts_in_bounds(tmp_path, executors):
    path = written(tmp_path / "jobs.jsonl", one_of("a", tasks=4))
    stage = workload_of(path, machines_of(executors)).jobs[0].stages[0]
    assert stage.duration == (4 + 4 + 2 + 2) / 4
    assert stage.durations.tolist() == [1, 1, 1, 1]


def test_waves_that_are_not_told_take_what_the_next_ones_do(tmp_path, executors):
    path = written(tmp_path / "jobs.jsonl", one_of("a", seconds={"rest": {"1": 1, "3": 5}}))
    waves = workload_of(path, machines_of(executors)).jobs[0].stages[0].waves
    assert [[float(curve.on(count)) for count in (1, 2, 3, 9)] for curve in waves] == [[1, 3, 5, 5]] * 3


def test_a_machine_with_room_for_two_is_fresh_for_each_job_in_turn(tmp_path):
    # a, b, a and b start on one machine: each finds the other's before it, so each costs a move and is fresh.
    machine = written(tmp_path / "machines.jsonl", EXECUTORS | {"count": 1, "allocatable": {"cpu": 2, "memory": "4Gi"}})
    outcome = replay(tmp_path, machine, "slot-fair", one_of("a", tasks=2), one_of("b", tasks=2))
    assert (outcome.tasks.ended - outcome.tasks.started).tolist() == [7, 7, 7, 7]


def test_moves_cost_tasks_of_plain_seconds_too_and_nothing_where_machines_are_one_bin(tmp_path, executors):
    seconds = [replay(tmp_path, executors, policy, job()).makespan for policy in ("first-fit", "upper-bound")]
    assert seconds == [12, 10]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ({"rest": {"0": 1}}, "stages[0].seconds.rest: '0'; accepted: counts of machines, 1 to 999999"),
        ({"rest": {"1": 1}, "first": {"1.5": 1}}, "stages[0].seconds.first: '1.5'; accepted: counts of machines"),
        ({"rest": {"1": 1}, "fresh": {"2": 0}}, "stages[0].seconds.fresh.2: 0; accepted: 0.001 to 1e+09 seconds"),
        ({"rest": {"1": 2e9}}, "stages[0].seconds.rest.1: 2e+09; accepted: 0.001 to 1e+09 seconds"),
        ({"rest": {}}, "stages[0].seconds.rest: an empty object; accepted: an object of 1 or more keys"),
        ({"first": {"1": 1}}, "stages[0].seconds.rest: it is missing; needed: rest"),
        (
            {"rest": {"1": 1}, "last": {}},
            "stages[0].seconds.last: there is no such field; accepted: rest, first, fresh",
        ),
    ],
)
def test_waves_that_are_not_accepted_are_named(tmp_path, executors, seconds, words):
    path = written(tmp_path / "jobs.jsonl", one_of("a", seconds=seconds))
    with pytest.raises(TraceError) as error:
        workload_of(path, machines_of(executors))
    assert f"jobs.jsonl, line 1: field {words}" in str(error.value)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(one_of("a", seconds=seconds), schema("workload"))


def test_a_move_takes_no_time_below_zero(tmp_path):
    with pytest.raises(TraceError, match="line 1: field moveSeconds: -1; accepted: a number, 0 or more"):
        machines_of(written(tmp_path / "machines.jsonl", EXECUTORS | {"moveSeconds": -1}))


def test_a_tail_is_refused_where_seconds_go_by_wave(tmp_path, executors):
    path = written(tmp_path / "jobs.jsonl", one_of("a"))
    with pytest.raises(DovetailError, match="its tasks take seconds by wave"):
        perform(Run(str(path), str(executors), "tetris", 1, tail=1.5), lambda *_: None)

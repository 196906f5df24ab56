"""A recording is replayed as it was; what cannot be is said; contention is counted once."""

import gzip
import json

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from extender.cluster.recording.lines import Begin, Checkpoint, End, NodeLine, PodLine, encoded
from extender.errors import DovetailError, TraceError
from lab.errors import SpecError
from lab.sim import runs
from lab.sim.commands import simulate
from lab.sim.engine.clock import SimulationSettings
from lab.sim.recorded.contention_undone import seconds_at_peak
from lab.sim.recorded.delay import usual_delay
from lab.sim.recorded.reading import replay_of

DISK = "disk-read"
NODES = [NodeLine(100.0, name, {"cpu": 4000.0, "memory": 8e9, DISK: 100e6}) for name in ("n0", "n1")]


def pod(name, job, created, bound, ended, node, *, disk=0.0, **more):
    demand = {"cpu": 1000.0, "memory": 2e9, "pods": 1.0} | ({DISK: disk} if disk else {})
    return PodLine(
        name, "team", name, f"team/{job}", "team", demand, created, bound, bound, ended, node, "succeeded", **more
    )


def recording(tmp_path, *pods, living=(), cut=b""):
    file = tmp_path / "recording"
    lines = [Begin(100.0), Checkpoint(100.0, NODES, living), *pods, Checkpoint(500.0, NODES, living), End(500.0)]
    file.write_bytes(b"".join(map(encoded, lines)) + cut)
    return file


def outcome(file, policy):
    run = runs.Run(f"recording:{file}", "recorded", policy, 1, settings=SimulationSettings(heartbeat_seconds=0.0))
    return runs.perform(run, lambda _done, _total: None)


def test_the_policy_recorded_does_what_was_done(tmp_path):
    pods = [pod("a", "j", 110, 112, 150, "n1"), pod("b", "j", 110, 130, 141, "n0"), pod("c", "k", 120, 121, 125, "n0")]
    file = recording(tmp_path, *pods)
    was = outcome(file, "recorded")
    assert sorted(zip(was.tasks.started, was.tasks.ended, was.tasks.node, strict=True)) == [
        (12.0, 50.0, 1),
        (21.0, 25.0, 0),
        (30.0, 41.0, 0),
    ]
    assert {job.name: job.seconds for job in was.jobs} == {"team/team/j": 40.0, "team/team/k": 5.0}
    # kube-scheduler lets nobody wait here: j takes its longer task, 38 s. Pods waited for 2, 5 and 1 s at free nodes.
    assert {job.name: job.seconds for job in outcome(file, "kube-default").jobs} == {
        "team/team/j": 38.0 + 2.0,
        "team/team/k": 4.0 + 2.0,
    }


def test_a_simulated_start_takes_as_long_as_was_usual_where_there_was_room():
    # a: created 2 s before. b: its node came free 1 s before. c: 7 s. Ends elsewhere, and later ones, do not count.
    created, bound = np.array([0.0, 0.0, 3.0]), np.array([2.0, 9.0, 10.0])
    assert usual_delay(created, bound, np.array([8.0, 20.0, 11.0]), np.array([0, 0, 1])) == 2.0


def test_pods_that_ran_when_the_recording_began_do_not_say_how_long_a_start_takes(tmp_path):
    before = [pod(f"o{row}", "old", 20, 21, 150, "n0") for row in range(3)]
    ran = "3 pods ran when the recording began: such pods come then, and take what was left of their time."
    notes = replay_of(recording(tmp_path, *before, pod("a", "j", 110, 114, 150, "n1"))).notes
    assert notes == [ran, "Simulated starts take 4.000 s, as was usual."]
    notes = replay_of(recording(tmp_path, *before)).notes
    assert notes == [ran, "Simulated starts take 0.000 s, as was usual."]


def test_pods_that_slowed_each_other_down_are_not_slowed_down_twice(tmp_path):
    # Both want 100 MB/s of a disk of 100 MB/s: from 10 to 30 each has half. b is alone from 30 to 35.
    pods = [pod("a", "j", 110, 110, 130, "n0", disk=100e6), pod("b", "k", 110, 110, 135, "n0", disk=100e6)]
    replay = replay_of(recording(tmp_path, *pods))
    assert [job.stages[0].durations.tolist() for job in replay.workload.jobs] == [[10.0], [15.0]]
    was = outcome(tmp_path / "recording", "recorded")
    assert was.tasks.ended.tolist() == [30.0, 35.0]


def test_recorded_is_exact_where_pods_asked_for_more_cpu_than_there_is(tmp_path):
    # Three regular pods of 1 core and two opportunistic ones share 4 cores from 10 to 110.
    regular = [pod(f"r{row}", f"r{row}", 110, 110, 410, "n0") for row in range(3)]
    idle = [pod(f"o{row}", f"o{row}", 110, 110, 210, "n0", opportunistic=True) for row in range(2)]
    for some in (*regular, *idle):
        some.demand["memory"] = 1e9
    file = recording(tmp_path, *regular, *idle)
    was = outcome(file, "recorded")
    assert sorted(was.tasks.ended) == [110.0] * 2 + [310.0] * 3
    assert was.series.used[20, 0] == 0.5  # one of the two nodes is full, and no more
    # The other policies see that each takes as long as it took.
    replay = replay_of(file)
    assert sorted(job.stages[0].durations.item() for job in replay.workload.jobs) == [100.0] * 2 + [300.0] * 3


def test_recorded_is_exact_where_reading_and_writing_were_slowed_at_different_times(tmp_path):
    nodes = [NodeLine(100.0, "n0", {"cpu": 9000.0, "memory": 9e9, DISK: 100.0, "disk-write": 100.0})]
    pods = [pod("a", "a", 110, 110, 130, "n0", disk=100.0), pod("b", "b", 110, 110, 120, "n0", disk=100.0)]
    pods.append(pod("c", "c", 120, 120, 130, "n0"))
    pods[0].demand["disk-write"] = pods[2].demand["disk-write"] = 100.0
    file = tmp_path / "recording"
    lines = [Begin(100.0), Checkpoint(100.0, nodes, []), *pods, Checkpoint(500.0, nodes, []), End(500.0)]
    file.write_bytes(b"".join(map(encoded, lines)))
    # Its reading goes at half speed from 10 to 20, its writing from 20 to 30.
    assert sorted(outcome(file, "recorded").tasks.ended) == [20.0, 30.0, 30.0]


def test_without_over_allocation_a_task_takes_as_long_as_it_took():
    start, end = np.array([0.0, 1.0, 1.0]), np.array([5.0, 4.0, 9.0])
    demand, capacity = np.ones((3, 6)), np.full((2, 6), 2.0)
    assert seconds_at_peak(start, end, np.array([0, 0, 1]), demand, capacity).tolist() == [5.0, 3.0, 8.0]


def test_pods_that_live_all_the_time_take_room_from_their_node(tmp_path):
    service = PodLine("s", "web", "s", "web/s", "web", {"cpu": 3000.0, "memory": 1e9}, 1.0, 2.0, 3.0, None, "n0")
    replay = replay_of(recording(tmp_path, pod("a", "j", 110, 112, 150, "n1"), living=[service]))
    assert replay.machines.capacity[:, 0].tolist() == [1000.0, 4000.0]
    assert replay.notes == [
        "1 pod lived all the time: that room is taken from the nodes.",
        "Simulated starts take 2.000 s, as was usual.",
    ]


def test_a_pod_that_only_waited_when_the_recording_began_takes_no_room_all_the_time(tmp_path):
    # n0 and n1 have 4 cores each, of which `a` takes 4 until 150; `w` gets its node then, and still runs at the end.
    big = pod("a", "j", 90, 95, 150, "n0")
    late = pod("w", "k", 90, 150, None, "n0")
    for some in (big, late):
        some.demand["cpu"] = 4000.0
    waits = msgspec.structs.replace(late, bound=None, started=None, node=None)
    file = tmp_path / "recording"
    lines = [Begin(100.0), Checkpoint(100.0, NODES, [waits]), big, Checkpoint(500.0, NODES, [late]), End(500.0)]
    file.write_bytes(b"".join(map(encoded, lines)))
    replay = replay_of(file)
    assert "Left out: 1 pod that came, and had not ended at the last checkpoint." in replay.notes
    assert outcome(file, "recorded").series.demanded.max() == 0.5  # one of two nodes is full


def test_what_is_left_out_and_what_is_not_counted_is_said(tmp_path):
    gpu = pod("g", "j", 110, 112, 150, "n1")
    gpu.demand["nvidia.com/gpu"] = 1.0
    ganged = pod("h", "k", 110, 112, 150, "n0", group="team/gang", priority=9)
    unseen = PodLine("u", "team", "u", "team/u", "team", {}, 110.0, outcome="unseen", between=(120.0, 130.0))
    notes = " ".join(replay_of(recording(tmp_path, gpu, ganged, unseen)).notes)
    assert "Left out: 1 pod that got no node" in notes
    assert "1 pod asked for nvidia.com/gpu, which no node offers: not counted." in notes
    assert "1 pod of groups may start one by one: a group has several stages" in notes
    assert "Pods have 2 priorities: the higher goes first, and preempts." in notes


def test_each_reason_for_which_a_pod_is_left_out_is_told_apart(tmp_path):
    whole = pod("a", "j", 110, 112, 150, "n1")
    edited = [
        msgspec.structs.replace(pod("b", "j", 110, 112, 150, "n1"), bound=None),
        pod("c", "j", 110, 112, 150, "n9"),
        pod("d", "j", 80, 85, 95, "n1"),
    ]
    living = pod("e", "j", 90, 95, None, "n9")
    replay = replay_of(recording(tmp_path, whole, *edited, living=[living]))
    assert [note for note in replay.notes if note.startswith("Left out")] == [
        "Left out: 1 pod that got no node, or whose binding or end nobody saw.",
        "Left out: 2 pods on nodes that are not in the recording.",
        "Left out: 1 pod that had ended before the recording began.",
    ]


def test_a_pod_that_stands_twice_in_a_recording_is_replayed_once(tmp_path):
    # As where two recordings of the same time were joined; one of them did not see how b ended.
    ended, later = pod("a", "j", 110, 112, 150, "n1"), pod("b", "k", 110, 112, 160, "n0")
    unseen = msgspec.structs.replace(later, ended=None, outcome="unseen", between=(150.0, 170.0))
    replay = replay_of(recording(tmp_path, ended, unseen, ended, later))
    assert [(job.name, job.stages[0].tasks) for job in replay.workload.jobs] == [("team/team/j", 1), ("team/team/k", 1)]
    assert "Left out: 2 lines of pods that stand in the recording twice." in replay.notes


def test_a_pod_is_there_when_it_was_created_not_with_the_first_of_its_job(tmp_path):
    file = recording(tmp_path, pod("a", "j", 110, 110, 120, "n0"), pod("b", "j", 114, 114, 120, "n1"))
    for policy in ("recorded", "kube-default", "dovetail"):
        assert sorted(outcome(file, policy).tasks.started) == [10.0, 14.0], policy


def test_pods_of_one_owner_that_come_much_later_are_another_job(tmp_path):
    pods = [pod("a", "j", 110, 112, 150, "n1"), pod("b", "j", 300, 301, 310, "n0")]
    jobs = replay_of(recording(tmp_path, *pods)).workload.jobs
    assert [(job.name, job.arrives_at) for job in jobs] == [("team/team/j", 10.0), ("team/team/j, 2", 200.0)]


def test_jobs_of_queues_and_owners_that_are_joined_alike_are_two(tmp_path):
    names = [("a/b", "c"), ("a", "b/c"), ("q", "j, 2"), ("q", "j"), ("q", "j")]
    times = [(110, 112, 150)] * 4 + [(300, 301, 310)]
    pods = [pod(str(row), "j", *times[row], f"n{row % 2}") for row in range(5)]
    renamed = [
        msgspec.structs.replace(some, queue=queue, job=job) for some, (queue, job) in zip(pods, names, strict=True)
    ]
    file = recording(tmp_path, *renamed)
    jobs = [job.name for job in replay_of(file).workload.jobs]
    assert jobs == ["'a/b'/'c', 1", "'a'/'b/c', 1", "'q'/'j, 2', 1", "q/j", "'q'/'j', 2"]
    assert sorted(outcome(file, "recorded").tasks.ended) == [50.0] * 4 + [210.0]


def test_nobody_is_told_to_go_on_with_a_recording_without_names_that_was_cut_off(tmp_path):
    file = tmp_path / "recording"
    file.write_bytes(encoded(Begin(100.0, anonymous=True)) + encoded(Checkpoint(100.0, NODES, ())) + b'{"kind"')
    with pytest.raises(TraceError, match="line 3: the file ends in the middle of it; take that line away") as refused:
        replay_of(file)
    assert "--append" not in str(refused.value)


def test_a_file_that_is_none_is_refused_with_its_line(tmp_path):
    with pytest.raises(SpecError, match="accepted: a file of dovetail record"):
        replay_of(tmp_path / "nothing")
    with pytest.raises(TraceError, match="line 6: the file ends in the middle of it; dovetail record --append goes on"):
        replay_of(recording(tmp_path, pod("a", "j", 110, 112, 150, "n1"), cut=b'{"kind"'))
    zipped = tmp_path / "zipped"
    zipped.write_bytes(gzip.compress(recording(tmp_path).read_bytes(), mtime=0))
    with pytest.raises(TraceError, match="zipped, line 1: this is gzip; accepted: the file that gunzip makes of it"):
        replay_of(zipped)
    with pytest.raises(TraceError, match="no pod in it was bound and ended"):
        replay_of(recording(tmp_path))


def test_a_negative_amount_is_refused_with_its_line(tmp_path):
    edited = msgspec.structs.replace(pod("a", "j", 110, 112, 150, "n1"), demand={"cpu": -1000.0})
    with pytest.raises(TraceError, match=r"line 3: a: field demand\.cpu: -1000; accepted: whole, 0 or more"):
        replay_of(recording(tmp_path, edited))
    with pytest.raises(TraceError, match=r"line 2: a: field demand\.cpu: -1000"):
        replay_of(recording(tmp_path, living=(edited,)))
    with pytest.raises(TraceError, match=r"line 3: n0: field offers\.memory: -1; accepted: whole, 0 or more"):
        replay_of(recording(tmp_path, NodeLine(120.0, "n0", {"memory": -1.0})))


def test_an_amount_or_a_time_that_cannot_be_is_refused_with_its_line(tmp_path):
    for amount, said in ((1e20, r"1e\+20"), (5e-324, "4.94066e-324"), (0.5, "0.5")):
        accepted = r"accepted: whole, 0 or more, below 2\*\*53"
        with pytest.raises(TraceError, match=rf"line 3: n0: field offers\.memory: {said}; {accepted}"):
            replay_of(recording(tmp_path, NodeLine(120.0, "n0", {"memory": amount})))
    with pytest.raises(TraceError, match=r"line 3: Expected `float` <= 1000000000000.0 - at `\$.bound`"):
        replay_of(recording(tmp_path, pod("a", "j", 110, 1e308, 150, "n1")))


def test_a_recording_may_end_in_blank_lines(tmp_path):
    file = recording(tmp_path, pod("a", "j", 110, 112, 150, "n1"), cut=b"\n  ")
    assert len(replay_of(file).workload.jobs) == 1


def test_no_tail_is_drawn_for_a_recording(tmp_path):
    file = recording(tmp_path, pod("a", "j", 110, 112, 150, "n1"))
    run = runs.Run(f"recording:{file}", "recorded", "recorded", 1, tail=1.5)
    with pytest.raises(DovetailError, match="a recording says how long each task took"):
        runs.perform(run, lambda _done, _total: None)


@pytest.mark.parametrize(
    ("workload", "machines", "said"),
    [
        ("suite:jobs=1", "recorded", "machines recorded: those of a recording; write --workload recording:FILE"),
        (
            "{file}.jsonl",
            "tetris:2",
            "{file}.jsonl is a recording (dovetail record); write --workload recording:{file}",
        ),
        ("{file}", "tetris:2", "if it is a recording, write --workload recording:{file}"),
    ],
)
def test_how_a_recording_is_named_is_said_where_it_is_named_in_another_way(tmp_path, workload, machines, said):
    file = recording(tmp_path, pod("a", "j", 110, 112, 150, "n1"))
    file.with_suffix(".jsonl").write_bytes(file.read_bytes())
    options = [f"--workload={workload.format(file=file)}", f"--machines={machines}", "--policy=recorded"]
    shown = CliRunner().invoke(simulate, options)
    assert said.format(file=file) in str(shown.exception)


def test_recorded_is_a_policy_of_recordings_only():
    with pytest.raises(SpecError, match="needs --workload recording:FILE"):
        runs.perform(runs.Run("suite:jobs=1", "tetris", "recorded", 1), lambda _done, _total: None)


def test_the_command_shows_what_was_beside_what_would_have_been(tmp_path):
    # b waited for 2 s from the end of c; simulated, it waits for nobody.
    pods = [pod("a", "j", 110, 112, 150, "n1"), pod("b", "k", 110, 130, 160, "n0"), pod("c", "k", 110, 112, 128, "n0")]
    file, policies = recording(tmp_path, *pods), "--policy=recorded,kube-default,tetris"
    options = [f"--workload=recording:{file}", "--machines=recorded", policies, "--json", "--processes=1"]
    shown = CliRunner().invoke(simulate, options)
    assert shown.exit_code == 0, shown.output
    made = json.loads(shown.stdout)["runs"]
    assert [(run["policy"], run["makespan"]) for run in made] == [
        ("recorded", 50.0),
        ("kube-default", 40.0),
        ("tetris", 40.0),
    ]


def test_a_recording_alone_is_compared_with_what_a_cluster_has_and_would_have(tmp_path):
    file = recording(tmp_path, pod("a", "j", 110, 112, 150, "n1"))
    shown = CliRunner().invoke(simulate, [f"--workload=recording:{file}", "--json", "--processes=1"])
    assert shown.exit_code == 0, shown.output
    document = json.loads(shown.stdout)
    assert [run["policy"] for run in document["runs"]] == ["recorded", "kube-default", "dovetail"]
    assert document["about"].startswith("1 pod of 1 job, as recorded in ")
    assert document["about"].endswith("Simulated starts take 2.000 s, as was usual.")


def test_on_other_machines_than_its_own_a_recording_is_compared_without_what_was(tmp_path):
    file, machines = recording(tmp_path, pod("a", "j", 110, 112, 150, "n1")), "--machines=2x8c16g,disk=800M,net=1250M"
    shown = CliRunner().invoke(simulate, [f"--workload=recording:{file}", machines, "--json", "--processes=1"])
    assert shown.exit_code == 0, shown.output
    assert [run["policy"] for run in json.loads(shown.stdout)["runs"]] == ["kube-default", "dovetail"]


def test_without_a_recording_the_machines_are_asked_for():
    shown = CliRunner().invoke(simulate, ["--workload=suite:jobs=1"])
    assert shown.exit_code == 2
    assert "Missing option '--machines'" in shown.output

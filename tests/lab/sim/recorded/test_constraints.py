"""Simulated schedulers go by the GPUs, selectors, taints, priorities and gangs that a recording holds."""

import json

import msgspec
import pytest
from click.testing import CliRunner

from extender.cluster.eligibility import Constraints, Requirement, Taint, Toleration
from extender.cluster.peers import HostPort, Peers, PodTerm, TopologySpread
from extender.cluster.recording.lines import Begin, Checkpoint, End, NodeLine, PodLine, decoded, encoded
from extender.cluster.recording.pseudonyms import Pseudonyms
from extender.errors import DovetailError
from lab.sim import runs
from lab.sim.commands import simulate
from lab.sim.engine.clock import SimulationSettings
from lab.sim.recorded.reading import replay_of

GPU = "nvidia.com/gpu"
SIMULATED = ("kube-default", "extender", "tetris")


def node(name, *, gpus=0, **more):
    return NodeLine(100.0, name, {"cpu": 4000.0, "memory": 8e9} | ({GPU: gpus} if gpus else {}), **more)


def pod(name, *, at=110, seconds=10.0, on="n0", cpu=1000.0, gpus=0, job=None, **more):
    """Return a pod that was created and bound at that time, in a job of its own unless one is named."""
    demand = {"cpu": cpu, "memory": 1e9, "pods": 1.0} | ({GPU: gpus} if gpus else {})
    at = float(at)
    job = f"team/{job or name}"
    return PodLine(name, "team", name, job, "team", demand, at, at, at, at + seconds, on, "succeeded", **more)


def recording(tmp_path, nodes, *pods, living=()):
    file = tmp_path / "recording"
    lines = [Begin(100.0), Checkpoint(100.0, nodes, living), *pods, Checkpoint(500.0, nodes, living), End(500.0)]
    file.write_bytes(b"".join(map(encoded, lines)))
    return file


def tasks(file, policy):
    """Return when each task started and on which node, in the order of the jobs' names."""
    run = runs.Run(f"recording:{file}", "recorded", policy, 1, settings=SimulationSettings(heartbeat_seconds=0.0))
    outcome = runs.perform(run, lambda _done, _total: None)
    return list(zip(outcome.tasks.started.tolist(), outcome.tasks.node.tolist(), strict=True))


@pytest.mark.parametrize("policy", SIMULATED)
def test_gpus_are_given_once_at_a_time(tmp_path, policy):
    # One GPU, on n1. Both pods come at 10 s; the second waits until the first has ended at 20 s.
    nodes = [node("n0"), node("n1", gpus=1)]
    file = recording(tmp_path, nodes, pod("a", on="n1", gpus=1), pod("b", at=110, on="n1", gpus=1))
    assert sorted(tasks(file, policy)) == [(10.0, 1), (20.0, 1)]


def test_the_policy_recorded_waits_for_a_gpu_that_simulated_ends_have_not_freed_yet(tmp_path):
    file = recording(tmp_path, [node("n0", gpus=1)], pod("a", gpus=1), pod("b", at=119, gpus=1))
    assert tasks(file, "recorded") == [(10.0, 0), (20.0, 0)]


@pytest.mark.parametrize("policy", SIMULATED)
@pytest.mark.parametrize(
    "constraints",
    [
        Constraints(selector=(("pool", "b"),)),
        Constraints(terms=((Requirement("pool", "In", ("b", "c")),),)),
    ],
)
def test_node_selectors_and_required_affinity_hold(tmp_path, policy, constraints):
    nodes = [node("n0", labels={"pool": "a"}), node("n1", labels={"pool": "b"}), node("n2", labels={"pool": "a"})]
    pods = [pod(name, on="n1", constraints=constraints) for name in "abcdef"]
    file = recording(tmp_path, nodes, *pods)
    # Four cores on n1, one each: two wait for the first four.
    assert sorted(tasks(file, policy)) == [(10.0, 1)] * 4 + [(20.0, 1)] * 2


@pytest.mark.parametrize("policy", SIMULATED)
def test_taints_keep_away_who_does_not_tolerate_them(tmp_path, policy):
    nodes = [node("n0"), node("n1", taints=(Taint("gpu", "", "NoSchedule"),))]
    tolerant = Constraints(tolerations=(Toleration("gpu", "Exists"),))
    pods = [pod(name, cpu=4000.0) for name in "ab"] + [pod("c", on="n1", cpu=4000.0, constraints=tolerant)]
    started = tasks(recording(tmp_path, nodes, *pods), policy)
    assert [on for _, on in started[:2]] == [0, 0]


@pytest.mark.parametrize("policy", SIMULATED)
def test_a_cordoned_node_gets_nobody(tmp_path, policy):
    nodes = [node("n0"), node("n1", unschedulable=True)]
    started = tasks(recording(tmp_path, nodes, *(pod(name, cpu=4000.0) for name in "abc")), policy)
    assert sorted(started) == [(10.0, 0), (20.0, 0), (30.0, 0)]


@pytest.mark.parametrize("policy", SIMULATED)
def test_of_the_pods_that_wait_the_higher_priority_goes_first(tmp_path, policy):
    # a has the node until 20 s, and cannot be preempted. Of those that wait, c is named last, and goes first.
    pods = [pod("a", cpu=4000.0, priority=9), pod("b", at=111, cpu=4000.0), pod("c", at=112, cpu=4000.0, priority=9)]
    assert tasks(recording(tmp_path, [node("n0")], *pods), policy) == [(10.0, 0), (30.0, 0), (20.0, 0)]


def gang(least):
    """Return a pod that has three of four cores until 20 s, and two of a job of one core each."""
    group = {"job": "g", "group": "team/g", "least": least}
    return [pod("a", cpu=3000.0), pod("b", at=111, **group), pod("c", at=111, **group)]


def replayed(file, policy):
    """Return when each task ended, in the order of the jobs' names."""
    run = runs.Run(f"recording:{file}", "recorded", policy, 1, settings=SimulationSettings(heartbeat_seconds=0.0))
    return runs.perform(run, lambda _done, _total: None).tasks.ended.tolist()


def test_the_planner_starts_a_gang_whole_and_the_stock_scheduler_has_its_first_pod_hold_room(tmp_path):
    file = recording(tmp_path, [node("n0")], *gang(least=2))
    assert tasks(file, "tetris") == [(10.0, 0), (20.0, 0), (20.0, 0)]
    assert tasks(file, "kube-default") == [(10.0, 0), (11.0, 0), (20.0, 0)]
    # Their work of 10 s begins when both are there.
    assert replayed(file, "tetris") == replayed(file, "kube-default") == [20.0, 30.0, 30.0]
    assert "Groups of pods start together by Dovetail's planner" in " ".join(replay_of(file).notes)


def test_of_a_gang_as_many_must_start_together_as_it_says(tmp_path):
    assert tasks(recording(tmp_path, [node("n0")], *gang(least=1)), "tetris") == [(10.0, 0), (11.0, 0), (20.0, 0)]


def one_by_one(*seconds):
    """Return two pods of a group, bound at 10 and 15 s of the recording, which live for so long."""
    group = {"job": "g", "group": "team/g", "least": 2}
    pods = [pod(name, seconds=lived, **group) for name, lived in zip("bc", seconds, strict=True)]
    return [pods[0], msgspec.structs.replace(pods[1], bound=115.0, ended=115.0 + seconds[1])]


def test_a_recorded_group_did_not_work_before_all_of_it_was_there(tmp_path):
    # Bound at 10 and 15 s, ended at 27 and 25: from 15 s on, when both were there, their work took 12 and 10 s.
    file = recording(tmp_path, [node("n0")], *one_by_one(17.0, 10.0))
    assert [stage.durations.tolist() for job in replay_of(file).workload.jobs for stage in job.stages] == [[12.0, 10.0]]
    assert replayed(file, "recorded") == [27.0, 25.0]


def test_a_group_of_which_a_pod_ended_before_the_last_was_there_need_not_start_together(tmp_path):
    # The first ended at 14 s, the second was bound at 15: nobody waited for anybody.
    file = recording(tmp_path, [node("n0")], *one_by_one(4.0, 10.0))
    assert [stage.gang for job in replay_of(file).workload.jobs for stage in job.stages] == [False]
    assert replayed(file, "recorded") == [14.0, 25.0]
    assert "2 pods of groups may start one by one: a group has several stages" in " ".join(replay_of(file).notes)


def test_a_group_stays_whole_where_a_pod_of_its_job_came_well_before_it(tmp_path):
    # A launcher came 8 s before the first of the group, and 12 s before the second.
    group = {"job": "g", "group": "team/g", "least": 2}
    pods = [pod("a", at=104, job="g"), pod("b", at=112, **group), pod("c", at=116, **group)]
    file = recording(tmp_path, [node("n0")], *pods)
    jobs = [[(stage.tasks, stage.gang) for stage in job.stages] for job in replay_of(file).simulated.jobs]
    assert jobs == [[(1, False), (2, True)]]
    assert replayed(file, "recorded") == [14.0, 22.0, 26.0]


def test_who_ran_where_it_may_not_go_keeps_its_node(tmp_path):
    # It named its node itself, past the scheduler and the taint.
    nodes = [node("n0"), node("n1", taints=(Taint("mine", "", "NoSchedule"),))]
    file = recording(tmp_path, nodes, pod("a", on="n1", constraints=Constraints(selector=(("no", "where"),))))
    assert tasks(file, "kube-default") == [(10.0, 1)]
    said = "1 pod ran where selectors and taints do not allow that: each keeps its node."
    assert said in replay_of(file).notes


def places(count):
    return [NodeLine(100.0, "n0", {"cpu": 4000.0, "memory": 8e9, "pods": float(count)})]


def test_places_for_pods_count_where_there_are_fewer_than_pods_that_fit(tmp_path):
    file = recording(tmp_path, places(2), *(pod(name) for name in "abc"))
    assert sorted(tasks(file, "kube-default")) == [(10.0, 0), (10.0, 0), (20.0, 0)]


def test_a_pod_that_lives_all_the_time_takes_a_place(tmp_path):
    # Four places for the four pods that fit by CPU; the daemon, which asks for no CPU, has one of them.
    daemon = PodLine("d", "kube", "d", "kube/d", "kube", {"pods": 1.0}, 1.0, 1.0, 1.0, None, "n0")
    file = recording(tmp_path, places(4), *(pod(name) for name in "abcd"), living=[daemon])
    assert sorted(tasks(file, "kube-default")) == [(10.0, 0)] * 3 + [(20.0, 0)]


def test_places_that_cannot_run_out_do_not_count_so_any_policy_may_be_named(tmp_path):
    file = recording(tmp_path, places(4), *(pod(name) for name in "abcd"), *(pod(name, at=120) for name in "ef"))
    assert "pods" not in replay_of(file).machines.axis
    options = [f"--workload=recording:{file}", "--machines=recorded", "--json", "--processes=1"]
    shown = CliRunner().invoke(simulate, [*options, "--policy=recorded,drf", "--know-demands=0.5"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["runs"][0]["makespan"] == 20.0


def test_one_pod_that_asks_for_nothing_does_not_make_places_count(tmp_path):
    # Three places. The pod without CPU and two of 2 cores fit at once, and no third of these.
    pods = [pod("z", cpu=0.0), *(pod(name, cpu=2000.0) for name in "abc")]
    assert "pods" not in replay_of(recording(tmp_path, places(3), *pods)).machines.axis
    file = recording(tmp_path, places(2), *pods)
    run = runs.Run(f"recording:{file}", "recorded", "tetris", 1, settings=SimulationSettings(0.0, estimate=True))
    with pytest.raises(DovetailError, match=r"places for pods \(some node may run out of them before"):
        runs.perform(run, lambda _done, _total: None)


def test_the_command_takes_recorded_and_refuses_policies_that_do_not_see_gpus(tmp_path):
    file = recording(tmp_path, [node("n0", gpus=1)], pod("a", gpus=1))
    options = [f"--workload=recording:{file}", "--machines=recorded", "--json", "--processes=1"]
    shown = CliRunner().invoke(simulate, [*options, "--policy=recorded,kube-default,dovetail"])
    assert shown.exit_code == 0, shown.output
    assert [run["makespan"] for run in json.loads(shown.stdout)["runs"]] == [10.0, 10.0, 10.0]
    refused = CliRunner().invoke(simulate, [*options, "--policy=drf"])
    assert refused.exit_code == 2
    assert "'drf' does not see resources beyond" in refused.output


def test_constraints_that_the_recording_does_not_hold_are_said_with_their_count(tmp_path):
    pods = [pod("a", unwritten=("host-ports", "volumes")), pod("b", unwritten=("host-ports",)), pod("c")]
    notes = replay_of(recording(tmp_path, [node("n0")], *pods)).notes
    assert "2 pods had host ports: not counted." in notes
    assert "1 pod had volumes by claims: not counted." in notes


def test_what_pods_ask_of_other_pods_is_in_the_recording_and_said_not_to_be_simulated(tmp_path):
    near = PodTerm("zone", ("team",), ())
    asking = [Peers(away=(near,), ports=(HostPort(80),)), Peers(near=(near,)), Peers(spread=(TopologySpread(near),))]
    pods = [pod(name, peers=peers) for name, peers in zip("abc", asking, strict=True)]
    notes = replay_of(recording(tmp_path, [node("n0")], *pods, pod("d", unwritten=("pod-affinity",)))).notes
    assert "3 pods had required affinity to other pods, or away from them: not counted." in notes
    assert "1 pod had topology spread constraints: not counted." in notes
    assert "1 pod had host ports: not counted." in notes


def test_an_anonymous_recording_binds_pods_as_the_one_with_names_does(tmp_path):
    by_name = Constraints(terms=((Requirement("metadata.name", "In", ("n2",), field=True),),))
    selects = Constraints(selector=(("pool", "b"),), tolerations=(Toleration("mine", "Equal", "x"),))
    taint = Taint("mine", "x", "NoSchedule")
    nodes = [node("n0"), node("n1", labels={"pool": "b"}, taints=(taint,)), node("n2", gpus=1)]
    pods = [
        pod("a", on="n1", cpu=4000.0, constraints=selects),
        pod("b", on="n1", cpu=4000.0, constraints=selects),
        pod("c", on="n2", cpu=4000.0, gpus=1),
        pod("d", on="n2", cpu=4000.0, constraints=by_name),
        pod("e", at=111, on="n0", cpu=4000.0),
    ]
    named = recording(tmp_path, nodes, *pods)
    starts = sorted(at for at, _ in tasks(named, "kube-default"))
    assert starts == [10.0, 10.0, 11.0, 20.0, 20.0]
    hidden = Pseudonyms(b"0123456789abcdef")
    lines = [hidden(decoded(text, "here")) for text in named.read_bytes().splitlines()]
    named.write_bytes(b"".join(map(encoded, lines)))
    assert b"pool" not in named.read_bytes()
    assert sorted(at for at, _ in tasks(named, "kube-default")) == starts


def test_what_preemption_makes_begin_anew_is_counted_with_the_time_that_it_had_run(tmp_path):
    # a has the node from 10 s on. At 14 s b comes with a higher priority: a begins anew when b has ended.
    pods = [pod("a", cpu=4000.0), pod("b", at=114, cpu=4000.0, priority=9, on="n1")]
    nodes = [node("n0"), NodeLine(100.0, "n1", {"cpu": 4000.0, "memory": 8e9}, unschedulable=True)]
    file = recording(tmp_path, nodes, *pods)
    options = [f"--workload=recording:{file}", "--machines=recorded", "--processes=1", "--policy=kube-default,tetris"]
    shown = CliRunner().invoke(simulate, [*options, "--json"])
    assert shown.exit_code == 0, shown.output
    begun_anew = [run["begun_anew"] for run in json.loads(shown.stdout)["runs"]]
    assert begun_anew == 2 * [{"times": 1, "seconds": 4.0}]
    table = CliRunner().invoke(simulate, options).output
    assert "begun anew: times, s lost" in table

"""Nodes come, change and go in a simulation when they did in the recording."""

import msgspec
import pytest

from extender.cluster.eligibility import Constraints, Taint
from extender.cluster.recording.lines import Begin, Checkpoint, End, NodeGoneLine, NodeLine, PodLine, encoded
from extender.errors import DovetailError
from lab.sim import runs
from lab.sim.engine.clock import SimulationSettings
from lab.sim.recorded.reading import replay_of

SIMULATED = ("kube-default", "extender", "tetris")
GPU = "nvidia.com/gpu"


def node(name, at=100.0, *, gpus=0.0, **more):
    return NodeLine(at, name, {"cpu": 1000.0, "memory": 8e9} | ({GPU: gpus} if gpus else {}), **more)


NODES = (node("n0"),)


def pod(name, *, at, on="n0", seconds=10.0, gpus=0.0, **more):
    """Return a pod of one core that was created and bound at that time."""
    demand = {"cpu": 1000.0, "memory": 1e9} | ({GPU: gpus} if gpus else {})
    at = float(at)
    return PodLine(
        name, "team", name, f"team/{name}", "team", demand, at, at, at, at + seconds, on, "succeeded", **more
    )


def recording(tmp_path, *lines, nodes=NODES, last=None):
    file = tmp_path / "recording"
    ends = [Checkpoint(500.0, nodes if last is None else last, ()), End(500.0)]
    file.write_bytes(b"".join(map(encoded, [Begin(100.0), Checkpoint(100.0, nodes, ()), *lines, *ends])))
    return file


def tasks(file, policy, machines="recorded"):
    """Return when each task started for good and on which node, in the order of the jobs' arrival."""
    run = runs.Run(f"recording:{file}", machines, policy, 1, settings=SimulationSettings(heartbeat_seconds=0.0))
    outcome = runs.perform(run, lambda _done, _total: None)
    return list(zip(outcome.tasks.started.tolist(), outcome.tasks.node.tolist(), strict=True))


@pytest.mark.parametrize("policy", SIMULATED)
def test_a_node_takes_pods_from_the_moment_at_which_it_came(tmp_path, policy):
    # n1 comes at 5 s, when b waits for n0 to be free at 10 s.
    came = node("n1", 105.0)
    file = recording(tmp_path, came, pod("a", at=100), pod("b", at=101, on="n1"), last=(node("n0"), came))
    assert tasks(file, policy) == [(0.0, 0), (5.0, 1)]


@pytest.mark.parametrize("policy", SIMULATED)
def test_what_runs_on_a_node_that_goes_runs_again_elsewhere(tmp_path, policy):
    # Both run from 0 s on. n1 goes at 4 s; its pod waits for n0 and begins anew at 10 s.
    nodes = (node("n0"), node("n1"))
    lines = [pod("a", at=100), pod("b", at=100, on="n1"), NodeGoneLine(104.0, "n1")]
    assert sorted(tasks(recording(tmp_path, *lines, nodes=nodes, last=nodes[:1]), policy)) == [(0.0, 0), (10.0, 0)]


def test_the_policy_recorded_does_what_was_done_whenever_nodes_went(tmp_path):
    # b's pod was cleaned up 6 s after its node had gone.
    nodes = (node("n0"), node("n1"))
    lines = [pod("a", at=100), pod("b", at=100, on="n1"), NodeGoneLine(104.0, "n1")]
    assert tasks(recording(tmp_path, *lines, nodes=nodes, last=nodes[:1]), "recorded") == [(0.0, 0), (0.0, 1)]


def test_a_node_that_is_missing_at_a_checkpoint_has_gone(tmp_path):
    nodes = (node("n0"), node("n1"))
    lines = [Checkpoint(104.0, nodes[:1], ()), pod("a", at=105), pod("b", at=106, on="n0", seconds=5.0)]
    file = recording(tmp_path, *lines, nodes=nodes, last=nodes[:1])
    assert tasks(file, "kube-default") == [(5.0, 0), (15.0, 0)]


@pytest.mark.parametrize("policy", SIMULATED)
def test_a_cordon_a_taint_and_a_label_count_while_they_last(tmp_path, policy):
    # n0 is cordoned until 5 s, tainted until 7 s, and has the label from 9 s on.
    selects = Constraints(selector=(("pool", "a"),))
    lines = [
        node("n0", 105.0, taints=(Taint("mine", "", "NoSchedule"),)),
        node("n0", 107.0),
        node("n0", 109.0, labels={"pool": "a"}),
    ]
    pods = [pod("a", at=101, seconds=1.0), pod("b", at=101, seconds=1.0, constraints=selects)]
    file = recording(tmp_path, *lines, *pods, nodes=(node("n0", unschedulable=True),), last=lines[-1:])
    assert tasks(file, policy) == [(7.0, 0), (9.0, 0)]


@pytest.mark.parametrize("machines", ["recorded", "recorded-all"])
def test_the_policy_recorded_goes_by_no_cordon_or_taint_that_came_later(tmp_path, machines):
    # n0 is closed from 102 s on, so for most of the time; n1 would have taken both pods.
    taint = Taint("mine", "", "NoSchedule")
    closed, tainted = node("n0", 102.0, unschedulable=True), node("n2", 102.0, taints=(taint,))
    nodes = (node("n0"), node("n1"), node("n2"))
    lines = [closed, tainted, pod("a", at=101), pod("b", at=101, on="n2"), pod("c", at=140, on="n1")]
    file = recording(tmp_path, *lines, nodes=nodes, last=(closed, node("n1"), tainted))
    assert tasks(file, "recorded", machines) == [(1.0, 0), (1.0, 2), (40.0, 1)]


def test_gpus_that_a_node_advertises_later_are_there_later(tmp_path):
    later = node("n0", 108.0, gpus=1.0)
    file = recording(tmp_path, later, pod("a", at=101), pod("b", at=112, gpus=1.0), last=(later,))
    replay = replay_of(file)
    assert [(change.at, change.capacity[-1]) for change in replay.machines.changes] == [(0.0, 0.0), (8.0, 1.0)]
    assert tasks(file, "kube-default") == [(1.0, 0), (12.0, 0)]


def test_recorded_all_has_each_node_all_the_time(tmp_path):
    came = node("n1", 105.0)
    file = recording(tmp_path, came, pod("a", at=100), pod("b", at=101, on="n1"), last=(node("n0"), came))
    (first, on), (second, other) = tasks(file, "kube-default", "recorded-all")
    assert (first, second, {on, other}) == (0.0, 1.0, {0, 1})
    assert (
        "Nodes came, changed or went 1 time: so they do here (--machines recorded-all: all are there all the time). "
        "Use is in percent of all of them."
    ) in replay_of(file).notes


def test_a_pod_for_which_no_node_is_left_is_named(tmp_path):
    # The only node goes at 4 s; in the recording its pod was cleaned up at 10 s.
    file = recording(tmp_path, pod("a", at=100), NodeGoneLine(104.0, "n0"), last=())
    with pytest.raises(DovetailError, match=r"team/a/0 waits, .*machines have gone for good"):
        tasks(file, "kube-default")


def test_that_labels_keep_a_pod_from_every_machine_is_said(tmp_path):
    # n0 has the label for 10 s, and room for one pod: when a ends, b may not go there any more.
    labelled, selects = node("n0", labels={"pool": "a"}), Constraints(selector=(("pool", "a"),))
    pods = [pod(name, at=100, seconds=20.0, constraints=selects) for name in "ab"]
    file = recording(tmp_path, node("n0", 110.0), *pods, nodes=(labelled,), last=NODES)
    with pytest.raises(DovetailError, match=r"team/b/0 waits, .*; node selectors or taints keep it from every machine"):
        tasks(file, "kube-default")


KEPT = "With --machines recorded-all, where each node is as it was for longest, none would take {} by selectors and "


@pytest.mark.parametrize("policy", [*SIMULATED, "recorded"])
@pytest.mark.parametrize(
    "later", [{}, {"labels": {"pool": "a"}, "unschedulable": True}, {"taints": (Taint("mine", "", "NoSchedule"),)}]
)
def test_a_pod_that_no_node_takes_as_it_was_for_longest_keeps_its_node_where_all_are_there_all_the_time(
    tmp_path, policy, later
):
    # n0 has the label, and is open, for 10 s of 400. n1 is free.
    labelled, selects = node("n0", labels={"pool": "a"}), Constraints(selector=(("pool", "a"),))
    changed, nodes = node("n0", 110.0, **later), (labelled, node("n1"))
    file = recording(tmp_path, changed, pod("a", at=100, constraints=selects), nodes=nodes, last=(changed, node("n1")))
    assert tasks(file, policy, "recorded-all") == [(0.0, 0)]
    assert KEPT.format("1 pod") + "taints: each keeps its node." in replay_of(file).notes


def test_a_group_that_no_nodes_take_as_they_were_for_longest_keeps_to_its_nodes_and_starts_together(tmp_path):
    # Both nodes have the label for 10 s of 400; one of them alone holds one pod of the two.
    selects = Constraints(selector=(("pool", "a"),))
    nodes = [node(name, labels={"pool": "a"}) for name in ("n0", "n1")]
    later = [node(name, 110.0) for name in ("n0", "n1")]
    group = {"constraints": selects, "group": "team/g", "least": 2}
    pods = [
        msgspec.structs.replace(pod(name, at=100, on=on, **group), job="team/g")
        for name, on in (("a", "n0"), ("b", "n1"))
    ]
    file = recording(tmp_path, *later, *pods, nodes=nodes, last=later)
    assert sorted(tasks(file, "tetris", "recorded-all")) == [(0.0, 0), (0.0, 1)]
    (job,) = replay_of(file).steady.jobs
    assert [(stage.tasks, stage.gang, stage.least) for stage in job.stages] == [(2, True, 2)]


def test_who_finds_a_node_as_it_was_for_longest_keeps_none(tmp_path):
    file = recording(tmp_path, node("n1", 105.0), pod("a", at=100), last=(node("n0"), node("n1", 105.0)))
    replay = replay_of(file)
    assert replay.steady is replay.simulated
    assert not any("recorded-all, where" in note for note in replay.notes)


def test_nodes_that_stay_as_they_are_have_no_changes(tmp_path):
    file = recording(tmp_path, node("n0", 104.0), pod("a", at=100))
    assert replay_of(file).machines.changes == ()

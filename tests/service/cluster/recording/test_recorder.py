"""A pod is written once, when it ends; what was missed is said; nothing that has ended is kept."""

import tracemalloc

import pytest

from extender.cluster.eligibility import Requirement
from extender.cluster.events import NodeGone, NodeSeen, NodesListed, PodGone
from extender.cluster.model import Node, Pod
from extender.cluster.peers import Peers, PodTerm
from extender.cluster.recording.lines import Gap, NodeGoneLine, NodeLine, PodLine, decoded, encoded
from extender.cluster.recording.observed import Moments, PodObserved, PodsObserved
from extender.cluster.recording.past import Past
from extender.cluster.recording.pseudonyms import Pseudonyms
from extender.cluster.recording.recorder import ClusterRecorder

NODE = Node("n", {"cpu": 4000.0})


def pod(uid="a", *, version=0, **changes):
    return Pod(uid, "team", f"pod-{uid}", {"cpu": 500.0}, created=100.0, resource_version=version, **changes)


def seen(uid="a", *, moments=None, **changes):
    return PodObserved(pod(uid, **changes), moments or Moments())


def live(recorder):
    """Return how many pods it holds."""
    return len(recorder.checkpoint(0.0).pods)


def listed(*pods, moments=()):
    return PodsObserved(pods, [*moments] or [Moments()] * len(pods))


def begun(*pods, past=None, at=90.0):
    """Return a recorder that has listed one node and these pods."""
    recorder = ClusterRecorder(at, past) if past else ClusterRecorder(at)
    assert recorder.synced is False
    lines = [*recorder.take(NodesListed([NODE]), at), *recorder.take(listed(*pods), at)]
    assert recorder.synced
    return recorder, lines


def test_a_pod_is_written_when_it_ends_with_its_times_and_is_forgotten():
    recorder, _ = begun()
    changes = [
        (seen(version=1), 100.2),
        (seen(version=2, node="n", moments=Moments(bound=100.0)), 100.6),
        (seen(version=3, node="n", started=101.0, moments=Moments(bound=100.0)), 101.3),
    ]
    assert [line for event, at in changes for line in recorder.take(event, at)] == []
    assert live(recorder) == 1
    end = seen(version=4, node="n", started=101.0, finished=True, moments=Moments(100.0, 140.0))
    (line,) = recorder.take(end, 140.7)
    assert (line.created, line.bound, line.started, line.ended) == (100.2, 100.6, 101.3, 140.7)
    assert (line.uid, line.node, line.outcome, line.demand) == ("a", "n", "succeeded", {"cpu": 500.0})
    assert live(recorder) == 0


@pytest.mark.parametrize(("came", "told"), [(139.0, 140.0), (140.4, 140.4), (170.0, 141.0)])
def test_a_time_is_never_outside_the_second_that_the_server_states(came, told):
    recorder, _ = begun()
    assert [line.ended for line in recorder.take(seen(finished=True, moments=Moments(ended=140.0)), came)] == [told]


def test_what_comes_twice_or_late_changes_nothing():
    recorder, _ = begun()
    end = seen(version=7, node="n", finished=True, failed=True)
    (line,) = recorder.take(end, 120.0)
    assert line.outcome == "failed"
    assert [*recorder.take(end, 121.0)] == []
    assert [*recorder.take(seen(version=5, node="n"), 121.0)] == []
    assert live(recorder) == 0
    assert [*recorder.take(PodGone("a"), 122.0)] == []
    assert [*recorder.take(seen(version=6, node="n"), 123.0)] == []
    assert live(recorder) == 0


def test_a_list_is_believed_also_where_it_is_older_as_after_a_restored_backup():
    recorder, _ = begun()
    assert [*recorder.take(seen(version=900, node="n"), 110.0)] == []
    assert [type(line) for line in recorder.take(listed(pod(version=500, node="n")), 120.0)] == [Gap]
    (line,) = recorder.take(seen(version=501, node="n", finished=True), 130.0)
    assert (line.outcome, line.ended) == ("succeeded", 130.0)


def test_a_pod_that_is_removed_before_it_ends_is_deleted():
    recorder, _ = begun(pod(node="n"))
    (line,) = recorder.take(PodGone("a"), 130.0)
    assert (line.outcome, line.ended) == ("deleted", 130.0)


def test_of_a_pod_that_is_told_to_go_from_outside_it_is_written_when_that_was():
    recorder, _ = begun(pod(node="n"))
    assert [*recorder.take(seen(version=1, node="n", moments=Moments(disrupted=120.0)), 120.4)] == []
    assert [*recorder.take(seen(version=2, node="n", moments=Moments(disrupted=120.0)), 121.8)] == []
    (line,) = recorder.take(PodGone("a"), 130.0)
    assert (line.outcome, line.disrupted, line.ended) == ("deleted", 120.4, 130.0)


def test_pods_that_ended_before_the_recording_began_are_not_written():
    ended = pod(node="n", finished=True)
    recorder = ClusterRecorder(90.0)
    assert [*recorder.take(listed(ended, moments=[Moments(ended=60.0)]), 90.0)] == []
    assert [*recorder.take(PodObserved(ended, Moments(ended=60.0)), 91.0)] == []
    assert live(recorder) == 0


def test_a_second_list_says_what_was_missed():
    recorder, _ = begun(pod("a", node="n"), pod("b", node="n"), pod("c"))
    recorder.hear("pods", 100.0)
    again = listed(
        pod("b", node="n", finished=True),
        pod("d", node="n", finished=True),
        pod("e", node="n", finished=True),
        moments=[Moments(95.0, 130.0), Moments(101.0, 140.0), Moments(20.0, 30.0)],
    )
    gap, *pods = recorder.take(again, 200.0)
    assert gap == Gap("pods", 100.0, 200.0)
    assert [(line.uid, line.outcome, line.ended, line.between) for line in pods] == [
        ("a", "unseen", None, (100.0, 200.0)),
        ("c", "unseen", None, (100.0, 200.0)),
        ("b", "succeeded", 130.0, None),
        ("d", "succeeded", 140.0, None),  # came and ended in the gap, and is still there; e had ended before
    ]


def test_a_recording_that_goes_on_takes_up_its_pods_and_writes_none_twice():
    first, _ = begun(pod("a", node="n"), pod("b"))
    checkpoint = first.checkpoint(95.0)
    (written,) = first.take(seen("a", version=3, node="n", finished=True, moments=Moments(91.0, 99.0)), 99.4)
    kept = [line for line in checkpoint.pods if line.uid != written.uid]
    past = Past(99.4, tuple(checkpoint.nodes), tuple(kept), frozenset({written.uid}))
    ended = pod("a", version=3, node="n", finished=True)
    second = ClusterRecorder(300.0, past)
    lines = [*second.take(listed(ended, pod("c"), moments=[Moments(91.0, 99.0), Moments()]), 300.0)]
    assert [(type(line).__name__, getattr(line, "uid", "")) for line in lines] == [("Gap", ""), ("PodLine", "b")]
    assert lines[0] == Gap("pods", 99.4, 300.0)
    assert lines[1].outcome == "unseen"
    assert [line.uid for line in second.checkpoint(301.0).pods] == ["c"]


def test_nodes_are_written_when_they_change_and_when_they_go():
    recorder, lines = begun()
    assert lines == []  # the checkpoint says them
    assert recorder.checkpoint(91.0).nodes == [NodeLine(90.0, "n", {"cpu": 4000.0})]
    assert [*recorder.take(NodeSeen(NODE), 95.0)] == []
    cordoned = Node("n", {"cpu": 4000.0}, unschedulable=True)
    assert [*recorder.take(NodeSeen(cordoned), 96.0)] == [NodeLine(96.0, "n", {"cpu": 4000.0}, unschedulable=True)]
    assert [*recorder.take(NodeGone("n"), 97.0)] == [NodeGoneLine(97.0, "n")]
    assert [*recorder.take(NodeGone("n"), 98.0)] == []
    assert [*recorder.take(NodesListed([NODE]), 99.0)] == [Gap("nodes", 98.0, 99.0), NodeLine(99.0, "n", {"cpu": 4000})]


def test_memory_goes_by_the_pods_that_live_and_not_by_those_that_ended():
    recorder, _ = begun()
    tracemalloc.start()
    try:
        for number in range(20_000):
            uid, version = f"{number:036d}", 2 * number
            for _ in recorder.take(seen(uid, version=version + 1, node="n"), 100.0):
                raise AssertionError
            (line,) = recorder.take(seen(uid, version=version + 2, node="n", finished=True), 110.0)
            assert [*recorder.take(PodGone(uid), 111.0)] == []
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert isinstance(line, PodLine)
    assert live(recorder) == 0
    assert held < 200_000  # a pod in memory is 0.8 kB or more: 20,000 of them would be 16 MB


def test_constraints_that_the_file_does_not_hold_are_named_in_a_pods_line():
    recorder, _ = begun()
    (line,) = recorder.take(seen(finished=True, moments=Moments(ended=140.0, unwritten=("host-ports",))), 140.0)
    assert line.unwritten == ("host-ports",)
    assert decoded(encoded(line), "here") == line
    assert decoded(encoded(line).replace(b',"unwritten":["host-ports"]', b""), "an older file").unwritten == ()
    assert Pseudonyms(b"k" * 16)(line).unwritten == ("host-ports",)


def about(app, key="app"):
    """Return what keeps a pod away from those of an app."""
    return Peers(away=(PodTerm("zone", ("team",), (Requirement(key, "In", (app,)),)),))


def test_of_labels_only_those_are_written_that_a_selector_of_any_pod_so_far_looks_at():
    labels = {"app": "web", "pod-name": "web-0"}
    recorder, _ = begun(pod("a"))
    for _ in recorder.take(seen("a", version=1, moments=Moments(labels=labels)), 100.0):
        raise AssertionError
    assert recorder.checkpoint(101.0).pods[0].labels == {}
    assert [*recorder.take(seen("b", version=2, moments=Moments(peers=about("web"))), 102.0)] == []
    a, b = recorder.checkpoint(103.0).pods
    assert (a.labels, a.peers, b.peers) == ({"app": "web"}, Peers(), about("web"))
    assert len([*recorder.take(PodGone("b"), 104.0)]) == 1
    (line,) = recorder.take(PodGone("a"), 105.0)
    assert line.labels == {"app": "web"}  # b was there at its time
    assert decoded(encoded(line), "here") == line


def test_a_recording_that_goes_on_knows_the_selectors_of_the_pods_that_it_had():
    before, _ = begun()
    for _ in before.take(seen("b", moments=Moments(peers=about("web"))), 100.0):
        raise AssertionError
    past = Past(110.0, (), tuple(before.checkpoint(110.0).pods))
    recorder = ClusterRecorder(120.0, past)
    (line,) = recorder.take(seen("c", version=9, finished=True, moments=Moments(labels={"app": "x", "n": "1"})), 121.0)
    assert line.labels == {"app": "x"}


def test_a_pods_line_of_an_older_file_asks_nothing_of_others():
    recorder, _ = begun()
    (line,) = recorder.take(seen(finished=True), 140.0)
    assert b"peers" not in encoded(line)
    assert b"labels" not in encoded(line)
    assert (decoded(encoded(line), "here").peers, decoded(encoded(line), "here").labels) == (Peers(), {})

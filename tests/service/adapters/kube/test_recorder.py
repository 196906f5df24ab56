"""Events in the background."""

import threading

import pytest
from structlog.testing import capture_logs

from extender.adapters.kube import recorder as module
from extender.adapters.kube.api import Refused
from extender.adapters.kube.recorder import EventRecorder
from extender.cluster.model import Pod
from extender.errors import ClusterError


class Board:
    """Takes objects as an API server would, or fails as told."""

    def __init__(self, failures=()):
        self.posted = []
        self.failures = list(failures)

    def post(self, path, body):
        self.posted.append((path, body))
        if self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure


def written(board, *warnings):
    recorder = EventRecorder(board)
    for warning in warnings:
        recorder.warn(*warning)
    recorder.stop()
    recorder.run()
    return board.posted


POD = ("Pod", "shop", "web", "u1", "annotation broken")


def test_a_pod_s_warning_is_an_event_in_its_namespace():
    [(path, event)] = written(Board(), POD)
    assert path == "/api/v1/namespaces/shop/events"
    assert event["metadata"]["namespace"] == "shop"
    assert event["metadata"]["name"].startswith("web.")
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "web",
        "uid": "u1",
        "namespace": "shop",
    }
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "BrokenAnnotation", "annotation broken")


def test_a_node_s_warning_goes_to_the_default_namespace():
    [(path, event)] = written(Board(), ("Node", "", "n1", "n1", "broken"))
    assert path == "/api/v1/namespaces/default/events"
    assert "namespace" not in event["involvedObject"]


def test_a_warning_is_written_once_for_each_object_and_message():
    posted = written(Board(), POD, POD, (*POD[:4], "another"), ("Pod", "shop", "web", "u2", POD[4]), POD)
    assert [(event["involvedObject"]["uid"], event["message"]) for _, event in posted] == [
        ("u1", "annotation broken"),
        ("u1", "another"),
        ("u2", "annotation broken"),
    ]


def test_each_warning_that_is_written_is_counted_once_by_its_kind():
    kinds = []
    recorder = EventRecorder(Board(), warned=kinds.append)
    for warning in (POD, POD, ("Node", "", "n1", "n1", "broken")):
        recorder.warn(*warning)
    assert kinds == ["Pod", "Node"]


def test_pods_of_one_owner_are_warned_of_once_whatever_the_words():
    posted = written(Board(), *((*POD[:3], f"u{number}", f"broken {number}", "owner") for number in range(5)))
    assert [event["involvedObject"]["uid"] for _, event in posted] == ["u0"]


def test_warnings_come_at_a_bounded_rate_and_those_left_out_can_be_given_later():
    board, seconds = Board(), [0.0]
    recorder = EventRecorder(board, clock=lambda: seconds[0])
    for second in range(6):
        seconds[0] = second
        for number in range(100):
            recorder.warn("Pod", "shop", "web", f"u{number}", "broken")
    recorder.stop()
    recorder.run()
    assert [event["involvedObject"]["uid"] for _, event in board.posted] == [f"u{number}" for number in range(15)]


def test_who_breaks_annotations_all_the_time_silences_nobody_in_another_namespace():
    board, seconds = Board(), [0.0]
    recorder = EventRecorder(board, clock=lambda: seconds[0])
    for second in range(60):
        seconds[0] = second
        for number in range(100):
            recorder.warn("Pod", "loud", "web", f"{second}/{number}", "broken")
        recorder.warn("Pod", "quiet", "web", "mine", "broken")
        recorder.warn("Node", "", "n1", "n1", "broken")
    recorder.stop()
    recorder.run()
    named = [event["involvedObject"]["uid"] for path, event in board.posted if "loud" not in path]
    assert named == ["mine", "n1"]
    assert len(board.posted) == 2 + 10 + 59


def test_of_so_many_namespaces_are_the_warnings_counted_at_most(monkeypatch):
    monkeypatch.setattr(module, "_REMEMBERED", 3)
    recorder = EventRecorder(Board(), clock=lambda: 0.0)
    for number in range(9):
        recorder.warn("Pod", f"s{number}", "web", f"u{number}", "broken")
        recorder.warn("Pod", "s0", "web", f"{number}", "broken")
    assert list(recorder._allowances) == ["s7", "s8", "s0"]


def test_what_was_said_already_does_not_use_up_the_rate():
    recorder = EventRecorder(Board(), clock=lambda: 0.0)
    for _ in range(100):
        recorder.warn(*POD)
    recorder.warn("Pod", "shop", "other", "u2", "broken")
    assert recorder._queue.qsize() == 2


def test_a_second_replica_gives_the_same_event_the_same_name():
    [(_, first)], [(_, second)] = written(Board(), POD), written(Board(), POD)
    assert first["metadata"]["name"] == second["metadata"]["name"]


@pytest.mark.parametrize("failure", [Refused("there", 409), Refused("forbidden", 403), ClusterError("unreachable")])
def test_a_refusal_or_an_outage_does_not_stop_the_next_warning(failure):
    posted = written(Board([failure]), POD, (*POD[:4], "another"))
    assert [event["message"] for _, event in posted] == ["annotation broken", "another"]


def test_an_event_waits_while_the_api_server_is_out_of_reach_but_not_for_ever(monkeypatch):
    monkeypatch.setattr(module, "_LONGEST_PAUSE_SECONDS", 0.001)
    board = Board([ClusterError("unreachable")] * 3 + [None] + [ClusterError("unreachable")] * 12 + [None])
    recorder = EventRecorder(board)
    for name in ("a", "b", "c"):
        recorder.say(Pod(uid=name, namespace="shop", name=name, demand={}), "Held", "no room", "no-room")
    recorder._queue.put(None)
    with capture_logs() as logs:
        recorder.run()
    names = [event["involvedObject"]["name"] for _, event in board.posted]
    assert names == ["a"] * 4 + ["b"] * 12 + ["c"]
    assert [line["event"] for line in logs] == ["event lost"]


def test_a_namespace_that_refuses_events_is_logged_once_until_it_takes_one():
    refused, gone = Refused("forbidden: it is being terminated", 403), Refused("there is no such namespace", 404)
    pods = [("Pod", namespace, f"{n}", f"{namespace}{n}", "broken") for n in range(3) for namespace in ("a", "b")]
    with capture_logs() as lines:
        written(Board([refused, refused, refused, gone]), *pods)
        written(Board([refused, None, refused]), *pods[::2])
    said = [line["namespace"] for line in lines if line["event"] == "event refused"]
    assert said == ["a", "b", "a", "a"]


def test_where_too_much_waits_already_a_warning_can_be_given_again_later():
    board = Board()
    recorder = EventRecorder(board)
    for number in range(module._WAITING):
        recorder.say(Pod(f"u{number}", "shop", "web", {}), "Held", "no room", "")
    recorder.warn(*POD)  # finds the queue full and must not wait
    for _ in range(2):
        recorder._queue.get_nowait()  # one for the warning, one for the end
    recorder.warn(*POD)
    recorder.stop()
    recorder.run()
    assert len(board.posted) == module._WAITING - 2 + 1
    assert board.posted[-1][1]["message"] == POD[4]


def test_long_names_and_messages_are_cut_to_what_kubernetes_takes():
    [(_, event)] = written(Board(), ("Pod", "shop", "a" * 219 + "." + "b" * 30, "u", "x" * 5000))
    name = event["metadata"]["name"]
    assert len(name) <= 253
    assert ".." not in name
    assert len(event["message"]) == 1000


def test_many_threads_that_say_the_same_write_it_once():
    board = Board()
    recorder = EventRecorder(board)
    threads = [threading.Thread(target=lambda: [recorder.warn(*POD) for _ in range(50)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.stop()
    recorder.run()
    assert len(board.posted) == 1


def test_what_became_of_a_pod_is_one_normal_event_for_each_reason_and_key_whatever_the_words():
    board, pod = Board(), Pod("u1", "shop", "web", {})
    recorder = EventRecorder(board)
    for reason, message, key in (("Held", "a", "no-room"), ("Held", "b", "no-room"), ("Held", "c", "gates")):
        recorder.say(pod, reason, message, key)
    recorder.say(pod, "Released", "d", "")
    recorder.stop()
    recorder.run()
    said = [(event["type"], event["reason"], event["message"]) for _, event in board.posted]
    assert said == [("Normal", "Held", "a"), ("Normal", "Held", "c"), ("Normal", "Released", "d")]
    assert board.posted[0][0] == "/api/v1/namespaces/shop/events"
    assert board.posted[0][1]["involvedObject"]["uid"] == "u1"


def test_after_a_restart_what_became_of_a_pod_has_the_same_name_whatever_the_words():
    names = []
    for message in ("2 of 3", "1 of 3"):
        board = Board()
        recorder = EventRecorder(board)
        recorder.say(Pod("u1", "shop", "web", {}), "Held", message, "gang")
        recorder.stop()
        recorder.run()
        names.append(board.posted[0][1]["metadata"]["name"])
    assert names[0] == names[1]

"""Why a pod was preempted, as its event says."""

import pytest

from extender.app.inspection.known_preemptions import end_of, eviction_of, preemption_of, said_of
from extender.app.inspection.reading import Reader
from tests.service.app.inspection.api_server import items, server

EVENTS = "/api/v1/namespaces/d/events"


def event(message, *, name="a", uid="u", at="2026-01-01T00:00:00Z", reason="Preempted"):
    return {
        "involvedObject": {"kind": "Pod", "name": name, "uid": uid},
        "reason": reason,
        "message": message,
        "source": {"component": "dovetail"},
        "lastTimestamp": at,
    }


def known(*events, uid=""):
    return preemption_of(Reader(server(**{EVENTS: items(*events)})), "d", "a", uid)


def test_the_last_event_of_a_preemption_says_why():
    later = event("too little memory", at="2026-01-01T00:00:09Z")
    assert known(event("too little cpu"), later, event("too little cpu")) == "too little memory"


def test_what_was_reclaimed_for_another_queue_is_a_preemption_too():
    assert known(event("evicted so that queue b gets its fair share", reason="Reclaimed")).startswith("evicted so that")


def test_kube_scheduler_s_event_says_why_too():
    theirs = {"source": {}, "lastTimestamp": None, "eventTime": "2026-01-01T00:00:01.000000Z"}
    assert known(event("before"), event("Preempted by pod x on node n") | theirs) == "Preempted by pod x on node n"


@pytest.mark.parametrize("other", [{"name": "b"}, {"reason": "Held"}, {"uid": "another"}])
def test_events_of_others_say_nothing(other):
    assert not known(event("it", **other), uid="u")


def test_an_event_of_another_reason_is_told_to_who_asks_for_that():
    reader = Reader(server(**{EVENTS: items(event("minimum cpu", reason="StaysRegular"), event("too little cpu"))}))
    assert said_of(reader, "d", "a", "StaysRegular", "u") == "minimum cpu"
    assert said_of(reader, "d", "a", "PromotionRefused", "u") == ""


def test_of_a_pod_that_is_gone_any_of_its_name_counts():
    assert known(event("too little cpu", uid="whatever")) == "too little cpu"


def test_where_events_may_not_be_read_nothing_is_known_and_nothing_is_missing():
    reader = Reader(server(**{EVENTS: None}))
    assert not preemption_of(reader, "d", "a")
    assert not reader.unread


def test_an_eviction_by_a_taint_is_named_by_its_reason_as_its_words_name_no_taint():
    marked = event("Marking for deletion Pod d/a", reason="TaintManagerEviction", uid="whatever")
    reader = Reader(server(**{EVENTS: items(marked)}))
    assert eviction_of(reader, "d", "a") == "TaintManagerEviction: Marking for deletion Pod d/a"
    assert eviction_of(reader, "d", "b") == ""


def test_an_eviction_by_a_taint_that_was_taken_back_is_none():
    marked = event("Marking for deletion Pod d/a", reason="TaintManagerEviction")
    later = event("Cancelling deletion of Pod d/a", reason="TaintManagerEviction", at="2026-01-01T00:00:09Z")
    assert eviction_of(Reader(server(**{EVENTS: items(marked, later)})), "d", "a") == ""


TAINTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


def container(code, reason="Error", name="main"):
    return {"name": name, "state": {"terminated": {"exitCode": code, "reason": reason}}}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({}, ""),
        ({"reason": "OutOfcpu", "message": "not enough"}, "OutOfcpu: not enough"),
        ({"conditions": [TAINTED]}, f"DeletionByTaintManager: {TAINTED['message']}"),
        (
            {"conditions": [TAINTED], "containerStatuses": [container(137)]},
            f"DeletionByTaintManager: {TAINTED['message']}",
        ),
        ({"conditions": [TAINTED | {"status": "False"}]}, ""),
        ({"containerStatuses": [container(0, "Completed"), container(3, name="side")]}, "container side: exit code 3"),
        ({"containerStatuses": [container(137, "OOMKilled")]}, "container main: exit code 137, OOMKilled"),
        (
            {
                "initContainerStatuses": [container(1, name="init")],
                "containerStatuses": [{"name": "main", "state": {}}],
            },
            "container init: exit code 1",
        ),
    ],
)
def test_a_status_says_why_a_pod_failed_or_is_being_deleted(status, said):
    assert end_of(status) == said

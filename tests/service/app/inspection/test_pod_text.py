"""What `dovetail explain pod` prints for people."""

import dataclasses
import math

import pytest

from extender.app.inspection.pod_text import pod_text
from extender.explain.pod import Explanation, Use
from extender.planner import WaitLeft


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        (
            WaitLeft("rack level", 5.0, 1.2, stays=True),
            "rack level in 4 s (its job has been passed over for 1 of 5 s)",
        ),
        (
            WaitLeft("anywhere", 2.5, 2.0, stays=False),
            "anywhere in 0.5 s, if it is passed over all that time (its job has been passed over for 2 of 2.5 s)",
        ),
    ],
)
def test_what_is_left_of_a_wait_is_said_in_seconds(wait, said):
    found = Explanation("d/a", "held", 3.0, {}, 0, "s", wait=wait)
    text = " ".join(pod_text(found).split())
    assert f"Its wait {said} Priority 0" in text


def test_a_pod_that_waits_for_gates_of_others_says_so_first():
    text = pod_text(Explanation("d/a", "held by gates of others", 3.0, {}, 0, "s"))
    assert text.splitlines()[0] == "Pod d/a: held by gates of others, for 3 s"


def test_a_released_pod_without_an_answer_names_its_scheduler_which_may_wait_for_a_volume_or_not_run():
    text = " ".join(pod_text(Explanation("d/a", "released", 3.0, {}, 0, "dovetial")).split())
    assert "Why it waits scheduler dovetial has neither bound nor refused it yet: it may wait for a volume " in text
    assert "where it does not run, or a ResourceClaim or PodGroup of the pod is not there, it never does" in text


def test_a_pod_that_is_not_ours_is_told_by_whom_and_for_what_it_was_refused():
    refused = Explanation("d/a", "not ours", 3.0, {}, 0, "other", refusal="0/1 nodes", refused_seconds=2.0)
    lines = pod_text(refused).splitlines()
    assert lines[0] == "Pod d/a: not ours: scheduler other decides, refused for 2 s"
    assert "Why it waits  0/1 nodes" in lines
    assert "Why it waits" not in pod_text(dataclasses.replace(refused, refusal=""))


def test_a_pod_on_a_node_says_that_it_is_being_deleted():
    found = Explanation("d/a", "bound", 3.0, {}, 0, "s", node="n1", leaving=True, use={"pods": Use(1.0, 110.0)})
    assert pod_text(found).splitlines()[0] == "Pod d/a: bound to node n1, being deleted"


def test_a_pod_says_that_its_node_is_not_there():
    found = Explanation("d/a", "bound", 3.0, {}, 0, "s", node="n1")
    assert pod_text(found).splitlines()[0] == "Pod d/a: bound to node n1, which is not there"
    assert pod_text(dataclasses.replace(found, state="finished")).splitlines()[0] == "Pod d/a: finished on node n1"


def test_a_pod_that_failed_says_so_and_why():
    found = Explanation("d/a", "failed", 3.0, {}, 0, "s", node="n1", ended="container main: exit code 3")
    lines = pod_text(found).splitlines()
    assert lines[0] == "Pod d/a: failed on node n1"
    assert "Ended         container main: exit code 3" in lines


REQUESTS = {"cpu": 2000.0, "memory": 4.0 * 2**30}


@pytest.mark.parametrize(
    ("state", "more", "said"),
    [
        ("bound", {"node": "n1"}, "opportunistic: runs on idle resources of node n1, until others need them; "),
        ("finished", {"node": "n1"}, "ran on idle resources of node n1; "),
        ("held", {"nominated": "n1"}, "opportunistic: waits to run on idle resources of node n1; "),
        ("released", {}, "opportunistic: waits for a node with idle resources; "),
    ],
)
def test_an_opportunistic_pod_says_where_it_runs_and_what_it_would_request(state, more, said):
    found = Explanation("d/a", state, 3.0, {}, 0, "s", running_as="opportunistic", regular_requests=REQUESTS, **more)
    text = " ".join(pod_text(found).split())
    assert f"Runs {said}regular requests: cpu 2 cores, memory 4 GiB Priority" in text


def test_one_that_never_is_regular_says_so():
    found = Explanation("d/a", "bound", 3.0, {}, 0, "s", node="n1", running_as="opportunistic")
    assert "until others need them; it never is regular" in " ".join(pod_text(found).split())


def test_a_promoted_pod_says_how_it_began():
    found = Explanation("d/a", "bound", 3.0, {}, 0, "s", node="n1", running_as="promoted", regular_requests=REQUESTS)
    text = " ".join(pod_text(found).split())
    assert "Runs regular: it began on idle resources of node n1, and what it requests is its own there now" in text


def test_of_a_regular_pod_nothing_is_said_of_it():
    text = pod_text(Explanation("d/a", "bound", 3.0, {}, 0, "s", node="n1", queue="q", share=0.5, fair_share=0.5))
    assert "Runs" not in text
    assert "opportunistic" not in text


def test_of_a_job_that_wants_no_more_than_it_has_only_its_work_is_told():
    pod = Explanation("d/a", "released", 3.0, {}, 0, "s", job="d/j", work=2.0, owed=-math.inf)
    assert "Job           d/j: 2 s of the whole cluster left" in pod_text(pod).splitlines()


def test_of_a_job_of_which_nothing_can_start_no_work_is_told():
    pod = Explanation("d/a", "held", 3.0, {}, 0, "s", job="d/j", work=0.0, owed=-math.inf)
    assert "Job           d/j" in pod_text(pod).splitlines()
    assert "Job           d/j: at its fair share" in pod_text(dataclasses.replace(pod, owed=0.0)).splitlines()


def test_the_rank_of_a_pod_is_told_where_its_job_has_an_order():
    pod = Explanation("d/a", "held", 3.0, {}, 0, "s", rank=0.625)
    assert "Rank          0.625 in the order of its job's DAG (1: the first task)" in pod_text(pod).splitlines()
    assert "Rank" not in pod_text(dataclasses.replace(pod, rank=None))


@pytest.mark.parametrize(("state", "label"), [("held", "Stays regular"), ("bound", "Not promoted ")])
def test_a_pod_says_why_it_stays_as_it_is(state, label):
    pod = Explanation("default/a", state, 60.0, {}, 0, "dovetail", node="n1", stays="the quota is used up")
    assert f"{label} the quota is used up" in pod_text(pod).splitlines()
    assert label.strip() not in pod_text(dataclasses.replace(pod, stays=""))


def test_a_preempted_pod_says_why_and_its_queue_has_both_shares():
    found = Explanation(
        "d/a", "being deleted", 3.0, {}, 0, "s", queue="q", share=0.5, fair_share=0.5, opportunistic_share=0.25,
        preempted="too little cpu on node n1",
    )  # fmt: skip
    text = " ".join(pod_text(found).split())
    assert "Preempted too little cpu on node n1" in text
    assert "Queue q: share 50.0 %, fair share 50.0 %, beside it 25.0 % opportunistic" in text

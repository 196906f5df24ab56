"""What the user's commands print for people: 100 columns, and problems first."""

from dataclasses import replace

from extender.app.inspection import tables
from extender.app.inspection.pod_text import pod_text
from extender.explain.findings import Finding
from extender.explain.pod import Explanation, NodeTerms, Position
from extender.explain.queues import QueueState
from extender.explain.wait_reasons import Reason

LONG = "a-name-of-sixty-three-letters-as-long-as-kubernetes-lets-it-be-x"


def test_everything_fits_100_columns_however_long_names_are():
    found = Explanation(
        pod=f"{LONG}/{LONG}", state="held", waited_seconds=1e7, demand=dict.fromkeys(("cpu", "memory"), 1e15),
        priority=2**31 - 1, scheduler="s", queue=LONG, share=0.5, fair_share=0.25, job=f"{LONG}/{LONG}", work=1e9,
        owed=-3.0, reason=Reason("barred", "no node allows it: node selector, affinity, taints or cordons " * 3),
        position=Position(placed=False, before=10**6, in_queue=10**6, reached=False), node=LONG, nominated=LONG,
        nodes=[NodeTerms(LONG, False, True, 0.5, {"cpu": 1e6, "memory": 1e12}, 1.0, -100.0, -100.0)],
        change=["x y " * 60], running_as="opportunistic", regular_requests=dict.fromkeys(("cpu", "memory"), 1e15),
        opportunistic_share=1.0, preempted="x y " * 60,
    )  # fmt: skip
    rows = [QueueState(LONG, "", 3, True, "fair", 1e6, 0.5, 1.0, 1.0, 10**6, 10**6, 10**6, 1e8, 1.0)]
    told = [Finding("minimum shares", "warning", "x y " * 60, "z " * 90)]
    for text in (pod_text(found), tables.queues(rows), tables.findings(told)):
        assert max(map(len, text.splitlines())) <= 100, text


def test_problems_come_first_and_all_are_counted():
    told = [Finding("b", "ok", "fine"), Finding("a", "problem", "bad", "do this")]
    assert tables.findings(told).splitlines() == [
        "problem  a              bad",
        "                        -> do this",
        "ok       b              fine",
        "",
        "problems: 1, warnings: 0, fine: 1",
    ]


def test_the_opportunistic_share_stands_beside_the_regular_one_where_any_queue_has_one():
    rows = [
        QueueState("a", "", 0, True, "fair", 1.0, 0.0, 0.25, 0.5, 1, 0, 0, None, 0.125),
        QueueState("b", "", 0, True, "fair", 1.0, 0.0, 0.25, 0.5, 1, 0, 0, None),
    ]
    heads, a, b = tables.queues(rows).splitlines()
    assert heads.split()[:6] == ["QUEUE", "WEIGHT", "MINIMUM", "SHARE", "OPPORT.", "FAIR"]
    assert a.split()[3:9] == ["25.0", "%", "12.5", "%", "50.0", "%"]
    assert b.split()[3:8] == ["25.0", "%", "-", "50.0", "%"]
    assert "OPPORT." not in tables.queues(rows[1:])


def test_where_there_are_no_queues_it_says_so():
    assert tables.queues([]) == "no queue is declared, and no pod has a place in the order"


def test_what_a_dag_makes_of_the_alignment_has_a_column_only_where_it_makes_a_difference():
    plain = NodeTerms("n1", True, True, 0.5, remote=0.9, work=0.125, score=0.375, order=1.0)
    found = Explanation("ns/a", "held", 1.0, {}, 0, "s", nodes=[plain])
    assert "ORDER" not in pod_text(found)
    later = Explanation("ns/a", "held", 1.0, {}, 0, "s", nodes=[replace(plain, order=0.75), NodeTerms("n2", 0, 1, 0.1)])
    heads, first, second = pod_text(later).splitlines()[-3:]
    assert heads.split() == ["NODE", "FITS", "SCORE", "ALIGNMENT", "REMOTE", "ORDER", "WORK", "SHORT", "OF"]
    assert first.split() == ["n1", "yes", "0.375", "0.500", "0.900", "0.750", "0.125", "-"]
    assert second.split() == ["n2", "no", "-", "0.100", "-", "-", "-", "-"]

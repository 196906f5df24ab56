"""What doctor finds: each finding where it is due, and not where it is not."""

import math
from collections.abc import Set
from dataclasses import replace

import msgspec
import pytest

from extender.adapters.usage.report import AutoReport, UsageReport
from extender.cluster.model import HOLD_GATE
from extender.cluster.node_terms import HAS_SWAP, OpportunisticTerms
from extender.cluster.pods.identity import Identity
from extender.cluster.queues import Queue
from extender.control.release.slots import Pace
from extender.explain import doctor as module
from extender.explain.doctor import findings
from extender.explain.findings import (
    Deadline,
    Eligible,
    Facts,
    FilterCalls,
    LeaseState,
    SchedulerConfiguration,
    Silent,
    Stated,
)
from tests.service.control.scene import Scene, node, pod

LEASE = LeaseState("dovetail-system/dovetail-control", "me", 1.0, 15.0)
CALLS = FilterCalls("http://here", True, nodes=1, calls=5, failed=0, samples=2, sampled=2)
CONFIGURATION = SchedulerConfiguration("dovetail-system/dovetail-kube-scheduler", 1)
DISKS = {"cpu": 1000.0, "memory": 1000.0, "disk-read": 1.0}


def facts_of(scene, **told):
    order = scene.view()
    known = {
        "schedulers": ("dovetail",),
        "lease": LEASE,
        "filter_calls": CALLS,
        "configuration": CONFIGURATION,
        "order": order,
        "pods": list(scene.pods.values()),
        "nodes": list(scene.backlog.nodes.values()),
    }
    return Facts(**{**known, **told})


def scene_of(*pods, nodes=None, **options):
    scene = Scene(*(nodes or [replace(node("n1"), allocatable=DISKS)]), **options)
    scene.see(*pods)
    return scene


def found(check, scene=None, **told):
    facts = facts_of(scene or scene_of(), **told)
    return [(it.level, it.text) for it in findings(facts) if it.check == check]


def test_where_nothing_is_wrong_every_check_says_so():
    levels = {it.check: it.level for it in findings(facts_of(scene_of()))}
    assert set(levels.values()) == {"ok"}
    assert set(levels) == {
        "leader", "extender", "sample", "weight", "gates", "schedulers", "deadlines", "minimum shares",
        "shares", "queue names", "capacities", "annotations",
    }  # fmt: skip


def test_whatever_is_not_fine_comes_with_advice():
    facts = facts_of(
        scene_of(pod("a", problem="broken")),
        lease=None,
        filter_calls="forbidden",
        configuration="forbidden",
        unread={"leases": "forbidden"},
    )
    assert all(it.advice for it in findings(facts) if it.level != "ok")


def test_what_cannot_be_read_is_a_finding_and_nothing_that_needs_it_is_called_fine():
    told = findings(Facts(("dovetail",), "no", "no", "no", unread={"pods": "no", "nodes": "no", "jobs": "no"}))
    assert [it.text for it in told if it.check == "rights"] == [
        "jobs cannot be read: no", "nodes cannot be read: no", "pods cannot be read: no",
    ]  # fmt: skip
    assert {it.level for it in told} == {"warning"}


@pytest.mark.parametrize(
    ("lead", "said"),
    [
        (None, "no Lease: `dovetail control` has never led here"),
        (replace(LEASE, holder=""), "nobody holds the Lease dovetail-system/dovetail-control"),
        (
            replace(LEASE, age_seconds=16.0),
            "Lease dovetail-system/dovetail-control of me was renewed 16 s ago, it lasts 15 s",
        ),
        (replace(LEASE, age_seconds=math.inf), "Lease dovetail-system/dovetail-control of me was never renewed"),
    ],
)
def test_without_a_leader_held_pods_make_it_a_problem(lead, said):
    assert found("leader", lease=lead) == [("warning", said)]
    assert found("leader", scene_of(pod("a")), lease=lead) == [("problem", f"{said}; 1 pod held until one leads")]


def test_a_leader_is_fine_and_one_that_cannot_be_read_is_not():
    assert found("leader") == [("ok", "me leads, renewed 1 s ago")]
    assert found("leader", lease="403")[0][0] == "warning"


class TestExtender:
    def test_calls_are_fine(self):
        assert found("extender") == [("ok", "http://here has answered 5 filter calls")]

    def test_no_call_although_pods_of_ours_have_nodes_is_a_problem(self):
        never = replace(CALLS, calls=0, samples=0, sampled=0)
        assert found("extender", filter_calls=never)[0][0] == "warning"
        unasked = "http://here has not been asked since it started"
        scene = scene_of(pod("a", gates=(), node="n1", created=50.0))
        assert found("extender", scene, filter_calls=never) == [
            ("problem", f"{unasked}, though 1 pod of our schedulerName came and got a node")
        ]
        # Restarted after that pod had come: nobody has had a reason to ask.
        assert found("extender", scene, filter_calls=replace(never, started=60.0)) == [("warning", unasked)]
        assert found("sample", scene, filter_calls=never) == []

    @pytest.mark.parametrize(
        ("calls", "failed", "level", "said"),
        [
            (5, 2, "warning", "2 of 5 filter calls failed"),
            (199, 2, "warning", "2 of 199 filter calls failed"),
            (200, 2, "ok", "2 of 200 filter calls failed"),
        ],
    )
    def test_failed_calls_are_a_warning_while_they_are_more_than_one_in_a_hundred(self, calls, failed, level, said):
        counts = replace(CALLS, calls=calls, failed=failed)
        assert found("extender", filter_calls=counts) == [(level, f"http://here: {said} since it started")]

    def test_one_that_is_not_ready_is_a_problem(self):
        assert found("extender", filter_calls=replace(CALLS, ready=False))[0] == ("problem", "http://here is not ready")

    def test_one_that_should_answer_and_does_not_is_a_problem_whoever_it_is(self):
        silent = Silent("http://here: timed out")
        assert found("extender", filter_calls=silent) == [
            ("problem", "`dovetail serve` does not answer: http://here: timed out")
        ]
        assert found("sample", filter_calls=silent) == []
        assert found("shares", passed_over=silent) == [
            ("problem", "`dovetail control` does not answer: http://here: timed out")
        ]

    def test_one_of_several_that_does_not_answer_is_a_warning(self):
        told = found("extender", filter_calls=replace(CALLS, silent="pod n/p: answer 503"))
        assert told[0] == ("warning", "some replicas do not answer: pod n/p: answer 503")

    def test_where_nobody_could_be_asked_it_says_why(self):
        assert found("extender", filter_calls="no such pod") == [
            ("warning", "cannot tell whether kube-scheduler asks `dovetail serve`: no such pod")
        ]


class TestSample:
    @pytest.mark.parametrize("order", ["auto", "filter", "gates"])
    def test_a_part_of_many_nodes_is_a_warning_only_where_pods_without_a_gate_look_for_their_input(self, order):
        # 5 calls about 500 of 5,000 nodes.
        part, stated = replace(CALLS, nodes=5000, samples=5, sampled=2500), Stated(order)
        said = "asked about 500 of 5,000 nodes a call"
        best = f"{said}; the best of these gets the pod, unless it was held"
        assert found("sample", filter_calls=part, stated=stated) == [("ok", best)]
        near = "where a node near their input is not among them, pods without a gate start farther away, or are tried"
        warned = ("ok", best) if order == "gates" else ("warning", f"{said}: {near} again as far as they wait for that")
        assert found("sample", filter_calls=part, stated=replace(stated, waits_nearby=True)) == [warned]
        assert found("sample", scene_of(pod("a", inputs=(("n1", 1.0),))), filter_calls=part, stated=stated) == [warned]
        whole = replace(part, sampled=25_000)
        assert found("sample", filter_calls=whole, stated=replace(stated, waits_nearby=True)) == [
            ("ok", "asked about 5,000 of 5,000 nodes a call")
        ]

    def test_only_nominated_nodes_are_no_sample(self):
        assert found("sample", filter_calls=replace(CALLS, samples=0, sampled=0)) == [
            ("ok", "only nominated nodes have been asked about, one at a time")
        ]


def test_the_weight():
    assert found("weight") == [
        ("ok", "weight 1: up to 100 points of a node's score (dovetail-system/dovetail-kube-scheduler)")
    ]
    points = "weight 1: up to 100 points of a node's score (dovetail-system/dovetail-kube-scheduler)"
    chosen = f"{points}, for pods whose node filter leaves to kube-scheduler"
    assert found("weight", stated=Stated(chooses=True)) == [("ok", chosen)]
    assert found("weight", configuration=replace(CONFIGURATION, weight=0))[0][0] == "problem"
    assert found("weight", configuration="403")[0][0] == "warning"


class TestGates:
    @pytest.mark.parametrize("others", [0, 2])
    def test_pods_behind_one_that_kube_scheduler_refuses_are_a_warning_that_names_it(self, others):
        scene = scene_of(pod("a", gates=(), unschedulable=True), pod("b"), pod("c"))
        scene.see(*(pod(f"large{n}", 2000) for n in range(others)))
        said = ("warning", "2 pods held: kube-scheduler refuses pod default/a, which asks for the same")
        rest = [("ok", "2 pods held, none of which fits now in its turn")] if others else []
        assert found("gates", scene) == [said, *rest]

    def test_nobody_is_told_to_delete_a_pod_that_kube_scheduler_refuses_for_lack_of_room_alone(self):
        facts = facts_of(scene_of(pod("a", gates=(), unschedulable=True), pod("b")))
        (advice,) = (it.advice for it in findings(facts) if it.check == "gates" and it.level == "warning")
        assert advice.endswith("unless that was room, correct or delete it, and those like it")

    def test_pods_that_would_fit_and_do_not_move_are_a_problem(self):
        scene = scene_of(pod("a"), pod("b"))
        now = scene.view()
        assert found("gates", scene, order=now, later=scene.view(3.0)) == [
            (
                "problem",
                "2 pods would fit in their turn, and none was released in 3 s; the oldest has waited 1 min 43 s",
            )
        ]

    def test_where_some_moved_it_is_fine(self):
        scene = scene_of(pod("a"), pod("b"), pace=Pace(unbound_pods=1))
        now = scene.view()
        scene.step(1.0)
        assert found("gates", scene, order=now, later=scene.view(2.0)) == [
            ("ok", "gates are being released: 1 of 2 due went on meanwhile")
        ]

    def test_pods_that_do_not_fit_are_held_rightly(self):
        assert found("gates", scene_of(pod("a", 2000))) == [("ok", "1 pod held, none of which fits now in its turn")]

    def test_a_pod_left_with_a_nomination_counts_as_due(self):
        assert module.due_now(scene_of(pod("a", nominated="n1", promised="n1")).view())


class TestKubeScheduler:
    def scene(self):
        """Return a scene of two released pods that take all the room, and one that waits behind them."""
        scene = scene_of(pod("a", 500), pod("b", 500), pod("waits", 500, created=1.0))
        scene.step()
        assert scene.released() == ["a", "b"]
        return scene

    def test_that_it_answers_about_nobody_is_a_warning_also_where_no_other_pod_has_its_turn(self):
        scene = self.scene()
        now = scene.view()
        assert module.due_now(now)
        assert found("gates", scene) == [("ok", "1 pod held, none of which fits now in its turn")]
        said = "2 pods may be scheduled, and kube-scheduler neither bound nor refused any in 4 s"
        assert found("kube-scheduler", scene, order=now, later=scene.view(4.0)) == [("warning", said)]

    @pytest.mark.parametrize("answer", [{"node": "n1"}, {"unschedulable": True}, {"leaving": True}])
    def test_where_it_answered_about_one_there_is_nothing_to_say(self, answer):
        before, after = self.scene(), self.scene()
        after.change("a", **answer)
        assert found("kube-scheduler", before, later=after.view(4.0)) == []

    def test_it_may_wait_for_volumes_without_a_word(self):
        scene = scene_of(pod("a", gates=(), claims=("default/c",)))
        assert found("kube-scheduler", scene, later=scene.view(4.0)) == []
        assert not module.due_now(scene.view())


class TestSchedulers:
    def test_a_name_that_nobody_has_seen_is_a_warning(self):
        scene = scene_of(replace(pod("a", gates=()), scheduler="typo"))
        assert found("schedulers", scene) == [
            ("warning", "no pod with schedulerName typo has a node here, no Lease has that name; 1 pod waiting")
        ]

    @pytest.mark.parametrize(
        ("more", "told"),
        [
            ([], {"leases": frozenset({"other"})}),
            ([replace(pod("b", gates=(), node="n1"), scheduler="other")], {}),
            ([], {"schedulers": ("other",)}),
        ],
        ids=["a Lease", "a pod with a node", "ours"],
    )
    def test_a_name_that_is_known_is_fine(self, more, told):
        scene = scene_of(replace(pod("a", gates=()), scheduler="other"), *more)
        assert [level for level, _ in found("schedulers", scene, **told)] == ["ok"]

    def test_the_names_of_all_leases_are_read_once_not_for_each_pod(self):
        class Names(Set):
            read = 0

            def __contains__(self, name):
                return name == "other"

            def __iter__(self):
                self.read += 1
                return iter(["other"])

            def __len__(self):
                return 1

        leases = Names()
        scene = scene_of(*(replace(pod(f"p{n}"), scheduler="other") for n in range(5)))
        assert [level for level, _ in found("schedulers", scene, leases=leases)] == ["ok"]
        assert leases.read == 1


class TestDeadlines:
    told = {"deadlines": {"u1": Deadline("Job default/train", "activeDeadlineSeconds", 600.0)}}  # noqa: RUF012

    def test_a_deadline_that_runs_while_pods_are_held_is_a_warning(self):
        scene = scene_of(pod("a", owner="u1"), pod("b", owner="u1"))
        assert found("deadlines", scene, **self.told) == [
            ("warning", "activeDeadlineSeconds (10 min) of Job default/train runs; held: 2 pods")
        ]

    def test_one_whose_pods_run_is_not(self):
        scene = scene_of(pod("a", owner="u1", gates=(), node="n1"), pod("b"))
        assert [level for level, _ in found("deadlines", scene, **self.told)] == ["ok"]

    def test_a_deployment_is_named_once_whichever_of_its_replica_sets_the_pods_are_of(self):
        told = {f"u{n}": Deadline("Deployment d/api", "progressDeadlineSeconds", 600.0) for n in range(2)}
        scene = scene_of(pod("old", owner="u0"), pod("new", owner="u1"))
        assert found("deadlines", scene, deadlines=told) == [
            ("warning", "progressDeadlineSeconds (10 min) of Deployment d/api runs; held: 2 pods")
        ]

    @pytest.mark.parametrize(("count", "others"), [(6, "1 more owner"), (8, "3 more owners")])
    def test_of_many_five_are_named(self, count, others):
        told = {f"u{n}": Deadline(f"Job d/j{n}", "activeDeadlineSeconds", 60.0) for n in range(count)}
        scene = scene_of(*(pod(f"p{n}", owner=f"u{n}") for n in range(count)))
        said = found("deadlines", scene, deadlines=told)
        assert len(said) == 6
        assert said[-1] == ("warning", f"the same goes for {others}")


def test_minimum_shares_that_exceed_the_cluster_are_a_warning():
    # 0.8 and 0.8 of 1: half each.
    scene = scene_of(queues=(Queue("a", minimum=0.8), Queue("b", minimum=0.8)))
    assert found("minimum shares", scene) == [
        ("warning", "minimum shares exceed what is above them and were scaled down: a 50.0 %, b 50.0 %")
    ]
    assert found("minimum shares")[0][0] == "ok"


class TestShares:
    def test_a_queue_that_is_passed_over_for_more_than_a_minute_is_a_problem(self):
        ((level, text),) = found("shares", passed_over={"poor": 61.0, "other": 60.0})
        assert level == "problem"
        assert text.startswith("queue poor has waited below its share for 1 min 1 s while room that it could have used")

    def test_one_that_waits_below_its_share_for_another_reason_is_a_note(self):
        # 1,000 in all, 500 each: rich runs 900, poor's 200 fit nowhere.
        scene = scene_of(pod("r", 900, queue="rich", gates=(), node="n1"), pod("p", 200, queue="poor"))
        note = "no queue is passed over; below their share: poor has 0.0 % of 50.0 % (mostly no-room)"
        assert found("shares", scene) == [("ok", note)]

    def test_what_control_cannot_be_asked_is_a_warning(self):
        ((level, text),) = found("shares", passed_over="no replica of it leads")
        unknown = (
            "cannot tell whether queues are passed over, which only `dovetail control` knows: no replica of it leads"
        )
        assert (level, text) == ("warning", unknown)


def test_room_that_is_reserved_is_said_with_whom_it_is_for():
    reserved = {"poor|big|small ones": ("n2", "n3"), "poor|big|large ones": ("n3", "n1"), "rich|other|": ("n4",)}
    told = found("reserved room", reserved=reserved, kept_idle=0.021)
    whom = "big of queue poor on n1, n2, n3; other of queue rich on n4"
    assert told == [("ok", f"2.1 % of the cluster is free and reserved: for {whom}")]
    assert found("reserved room") == []


def test_room_that_is_reserved_for_a_job_without_labels_is_said_by_its_owner():
    scene = scene_of(pod("a", job="3f2b", queue="poor", owner="3f2b", owner_kind="Job", owner_name="nightly"))
    (task_class,) = scene.backlog.classes()
    ((_, text),) = found("reserved room", scene, reserved={task_class.name: ("n2",)}, kept_idle=0.5)
    assert text == "50.0 % of the cluster is free and reserved: for Job default/nightly of queue poor on n2"


def test_pods_that_name_a_queue_in_vain_are_a_warning_by_namespace():
    named = [replace(pod(f"p{n}"), identity=Identity(f"p{n}", queue="made-up", named="made-up")) for n in range(3)]
    assert found("queue names", scene_of(*named)) == [
        ("warning", "3 pods of namespace default: there is no queue made-up; it counts in default")
    ]


def test_nodes_without_disk_and_network_are_a_warning():
    scene = scene_of(nodes=[*(node(f"n{n}") for n in range(4)), replace(node("z"), allocatable=DISKS)])
    assert found("capacities", scene) == [("warning", "4 of 5 nodes declare no disk or network: n0, n1, n2, ...")]
    assert found("capacities", Scene()) == [("warning", "there are no nodes")]


def test_broken_annotations_of_nodes_and_pods_are_a_warning_each_and_of_many_five_are_named():
    nodes = [replace(node("n1"), problem="bad capacity", allocatable=DISKS)]
    assert found("annotations", scene_of(pod("a", problem="bad demand"), nodes=nodes)) == [
        ("warning", "node n1: bad capacity"), ("warning", "pod default/a: bad demand"),
    ]  # fmt: skip
    for count, text in ((6, "1 more broken annotation"), (7, "2 more broken annotations")):
        many = scene_of(*(pod(f"p{n}", problem="bad", gates=(HOLD_GATE,)) for n in range(count)))
        assert found("annotations", many)[-1] == ("warning", text)


MEASURED = UsageReport(True, "http://p", measured=3, newest_seconds=4.0, oldest_seconds=20.0)


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (None, []),
        (MEASURED, [("ok", "http://p measures 3 nodes; their samples are 4 s to 20 s old")]),
        (
            "forbidden",
            [
                (
                    "warning",
                    "cannot tell whether the use of nodes is read, which only `dovetail control` knows: forbidden",
                )
            ],
        ),
        (UsageReport(False), [("problem", "settings say where to read the use of nodes, `control` reads none")]),
        (
            UsageReport(True, "http://p", "http://p: no answer in time"),
            [("problem", "the use of nodes is not known: http://p: no answer in time")],
        ),
        (
            UsageReport(
                True,
                "http://p",
                without_series=7,
                without_series_named=("a", "b"),
                strangers=1,
                strangers_named=("10.0.0.9:9100",),
                problems={"cpu is negative": 1, "newest sample is older than 90 s": 2},
            ),
            [
                ("problem", "http://p answers, and no node's use can be trusted"),
                ("warning", "7 nodes without series: a, b, ..."),
                ("warning", "2 nodes: newest sample is older than 90 s"),
                ("warning", "1 node: cpu is negative"),
                ("warning", "series of 1 machine outside this cluster: 10.0.0.9:9100"),
            ],
        ),
        (
            msgspec.structs.replace(MEASURED, without_pressure=2),
            [
                ("ok", "http://p measures 3 nodes; their samples are 4 s to 20 s old"),
                ("warning", "2 nodes: whether regular pods wait for CPU is not known"),
            ],
        ),
        (
            msgspec.structs.replace(MEASURED, auto=AutoReport(None, 3, 2, 4.9, {"cpu": 12000.0, "memory": 2.0**30})),
            [
                ("ok", "http://p measures 3 nodes; their samples are 4 s to 20 s old"),
                (
                    "ok",
                    "2 of 3 nodes with a history of two hours; peaks are predicted at N = 4.9; "
                    "they leave 12 cores and 1 GiB in all",
                ),
            ],
        ),
        (
            msgspec.structs.replace(MEASURED, auto=AutoReport("http://p: 422", 0, 0, None)),
            [
                ("ok", "http://p measures 3 nodes; their samples are 4 s to 20 s old"),
                ("warning", "the history of use cannot be read: http://p: 422"),
                ("warning", "there are no predicted peaks"),
            ],
        ),
        (
            msgspec.structs.replace(MEASURED, strangers=2, strangers_named=("x", "y")),
            [
                ("ok", "http://p measures 3 nodes; their samples are 4 s to 20 s old"),
                ("ok", "series of 2 machines outside this cluster: x, y"),
            ],
        ),
    ],
)
def test_what_is_known_of_use_its_age_and_who_has_no_partner_is_told(report, said):
    assert found("usage", usage=report) == said
    assert all(it.advice for it in findings(facts_of(scene_of(), usage=report)) if it.level != "ok")


def test_rates_that_nodes_declare_and_nobody_measures_are_told_where_pods_may_run_on_idle_room():
    report = msgspec.structs.replace(MEASURED, without_rates={"disk-read": 1, "disk-read, disk-write": 2})
    text = "http://p measures 3 nodes; their samples are 4 s to 20 s old"
    assert found("usage", usage=report) == [("ok", text)]
    assert found("usage", usage=report, eligible=Eligible(0)) == [
        ("ok", text),
        ("warning", "2 nodes: disk-read, disk-write declared and not measured"),
        ("warning", "1 node: disk-read declared and not measured"),
    ]


class TestOpportunistic:
    def test_where_settings_have_none_and_none_runs_nothing_is_said(self):
        assert found("opportunistic", scene_of(pod("a"), pod("b", gates=(), node="n1"))) == []

    def test_those_that_run_are_counted_beside_the_held_ones_that_may(self):
        scene = scene_of(
            pod("a", gates=(), node="n1", opportunistic=True),
            pod("b", gates=(), promised="n1", opportunistic=True),
            pod("c", gates=(), node="n1", opportunistic=True, finished=True),
            pod("d", gates=(), node="n1"),
        )
        assert found("opportunistic", scene, eligible=Eligible(2, {"it runs on Windows": 1, "a": 1, "b": 4})) == [
            (
                "ok",
                "on idle resources: 1 pod; held, and may run there by their spec: 2 pods; "
                "held, and may not: 4 pods: b, 1 pod: a, 1 pod: it runs on Windows",
            )
        ]

    def test_nodes_that_get_none_or_state_a_threshold_of_their_own_are_counted(self):
        terms = {
            "a": OpportunisticTerms(threshold=0.0),
            "b": OpportunisticTerms(threshold=0.5),
            "c": OpportunisticTerms(threshold=0.5, refuses=HAS_SWAP),
            "d": OpportunisticTerms(),
        }
        nodes = [replace(node(name), terms=these) for name, these in terms.items()]
        assert found("opportunistic", scene_of(nodes=nodes), eligible=Eligible(0))[1:] == [
            (
                "ok",
                "no opportunistic pods on 1 node: it has swap, where no pod's memory can be resized, "
                "1 node: dovetail.dev/opportunistic-threshold says so, or is broken; "
                "with a threshold of their own: 1 node",
            )
        ]

    def test_rare_reasons_are_added_up(self):
        reasons = {f"reason {n}": 10 - n for n in range(7)}  # 10, 9, 8, 7, 6, and 5 + 4
        ((_, text),) = found("opportunistic", eligible=Eligible(0, reasons))
        assert text.endswith("6 pods: reason 4, 9 pods: other reasons")

    def test_those_that_run_although_settings_have_none_are_told(self):
        scene = scene_of(pod("a", gates=(), node="n1", opportunistic=True))
        assert found("opportunistic", scene) == [
            ("ok", "on idle resources: 1 pod; settings start no more (opportunistic.enabled: false)")
        ]

    def test_where_pods_cannot_be_read_nothing_is_said(self):
        assert found("opportunistic", eligible=Eligible(0), unread={"pods": "no"}) == []

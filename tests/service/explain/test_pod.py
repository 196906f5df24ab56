"""One pod explained: its place in the order, how nodes suit it, what would have to change."""

from dataclasses import replace

import pytest

from extender.cluster.eligibility import UNSCHEDULABLE_TAINT, Constraints, Requirement, Taint
from extender.cluster.events import GroupSeen, NodeSeen
from extender.cluster.model import HOLD_GATE, Group, Node
from extender.cluster.pods.identity import Identity
from extender.cluster.queues import Queue
from extender.control.release.slots import Pace
from extender.explain.advice import changes_for
from extender.explain.amounts import amount, seconds
from extender.explain.new_pods import NewPods
from extender.explain.pod import Refusal, Use, explain
from extender.explain.pod_in_plan import case_of
from extender.explain.position import Position
from extender.planner import Policy
from tests.service.control.scene import LONG_SECONDS, Scene, node, pod

KUEUE = "kueue.x-k8s.io/admission"


def explained(scene, name, unled="", **more):
    found = scene.view()
    it = scene.pods[name]
    case = case_of(found, it)
    return explain(
        found,
        it,
        scene.policy,
        changes_for(case, found.why.get(it.uid), unled=unled) if case.task_class else [],
        **more,
    )


def change(scene, name):
    return list(explained(scene, name).change)


def two_nodes(*pods, **options):
    """n1 has 200 of 1,000 of CPU free, n2 has 400; `other` holds the rest."""
    scene = Scene(node("n1"), node("n2"), **options)
    taken = {"gates": (), "queue": "other"}
    scene.see(pod("runs1", 800, node="n1", **taken), pod("runs2", 600, node="n2", **taken), *pods)
    return scene


class TestPosition:
    def test_who_is_placed_knows_how_many_go_first(self):
        # Of one class the order is by creation; 1,000 of CPU, three of 300 fit.
        scene = Scene(node("n1"))
        scene.see(*(pod(f"p{n}", 300, job="j", created=float(n)) for n in range(5)))
        assert explained(scene, "p0").position == Position(placed=True, before=0, in_queue=0)
        assert explained(scene, "p2").position == Position(placed=True, before=2, in_queue=2)
        assert explained(scene, "p2").node == "n1"

    def test_who_is_not_placed_has_the_place_that_it_would_have_were_all_nodes_empty(self):
        # 1,000 of CPU, 900 of which are taken: none of 300 fits; of three that an empty node holds p1 is the second.
        scene = Scene(node("n1"))
        scene.see(pod("runs", 900, gates=(), node="n1"))
        scene.see(*(pod(f"p{n}", 300, job="j", created=float(n)) for n in range(5)))
        assert explained(scene, "p1").position == Position(placed=False, before=1, in_queue=1)
        assert explained(scene, "p1").node is None

    def test_who_does_not_fit_then_either_goes_after_at_least_all_who_do(self):
        scene = Scene(node("n1"))
        scene.see(*(pod(f"p{n}", 300, job="j", created=float(n)) for n in range(5)))
        assert explained(scene, "p4").position == Position(placed=False, before=3, in_queue=3, reached=False)

    def test_shares_count_in_the_order_of_those_who_wait(self):
        # `rich` holds all of the node: once there is room, `poor` goes first although `rich` was there before.
        scene = Scene(node("n1"), queues=(Queue("rich"), Queue("poor")), policy=Policy(fairness=0.9))
        scene.see(pod("runs", 1000, gates=(), node="n1", queue="rich"))
        scene.see(pod("r", 300, queue="rich", created=1.0), pod("p", 300, queue="poor", created=2.0))
        assert explained(scene, "p").position == Position(placed=False, before=0, in_queue=0)
        assert explained(scene, "r").position == Position(placed=False, before=1, in_queue=0)

    def test_who_can_never_be_placed_has_none(self):
        scene = Scene(node("n1"))
        scene.see(pod("a", 2000))
        assert explained(scene, "a").position is None

    def test_pods_of_other_queues_are_not_before_it_in_its_own(self):
        scene = Scene(node("n1"))
        scene.see(pod("first", 600, priority=9, queue="other"), pod("a", 300))
        assert explained(scene, "a").position == Position(placed=True, before=1, in_queue=0)

    def test_a_pod_that_the_plan_may_not_place_has_none(self):
        scene = Scene(node("n1"))
        scene.see(pod("a", gates=(HOLD_GATE, KUEUE)))
        assert explained(scene, "a").position is None


class TestNodes:
    def test_where_it_fits_comes_first_with_its_score_and_the_rest_say_what_is_short(self):
        # Demand 0.3 of CPU: on n2 with 0.4 free the alignment is 0.3 x 0.4 = 0.12; n1 lacks 100.
        # One class is all there is: eps x work = 1 x 0.12.
        n2, n1 = explained(two_nodes(pod("a", 300)), "a").nodes
        assert (n2.name, n2.fits, n1.name, n1.fits) == ("n2", True, "n1", False)
        assert n2.alignment == pytest.approx(0.12)
        assert (n2.work, n2.score, n2.remote) == (pytest.approx(0.12), pytest.approx(0.0), 1.0)
        assert (dict(n2.short), dict(n1.short)) == ({}, {"cpu": 100.0})

    def test_a_node_that_does_not_allow_it_comes_last_and_says_so(self):
        scene = two_nodes(
            pod("a", 300, constraints=Constraints(terms=((Requirement("metadata.name", "In", ("n1",), True),),)))
        )
        first, last = explained(scene, "a").nodes
        assert (first.name, first.allowed, last.name, last.allowed, last.fits) == ("n1", True, "n2", False, False)

    def test_what_it_would_strand_is_told_where_pods_ask_for_devices(self):
        # One of two pods here asks for eight GPUs. With this one on n1, seven are left for it.
        nodes = [
            replace(node(f"n{n}"), allocatable={"cpu": 1000.0, "a.b/gpu": gpus})
            for n, gpus in enumerate((1.0, 8.0, 8.0))
        ]
        scene = Scene(*nodes)
        scene.see(pod("runs", {"cpu": 100.0, "a.b/gpu": 1.0}, gates=(), node="n0", queue="other"))
        scene.see(pod("large", {"cpu": 100.0, "a.b/gpu": 8.0}, gates=(), node="n2", queue="other"))
        scene.see(pod("small", {"cpu": 100.0, "a.b/gpu": 1.0}))
        n1, *others = explained(scene, "small").nodes
        assert (n1.name, n1.strands) == ("n1", pytest.approx(7 / 2))
        assert [(other.fits, other.strands) for other in others] == [(False, None)] * 2

    def test_where_nobody_asks_for_devices_nothing_is_said_of_them(self):
        assert [found.strands for found in explained(two_nodes(pod("a", 300)), "a").nodes] == [None, None]

    def test_what_no_node_advertises_is_short_by_its_own_name(self):
        scene = Scene(node("n1"))
        scene.see(pod("a", {"cpu": 100.0, "a.b/gpu": 2.0, "a.b/fpga": 1.0}))
        assert dict(explained(scene, "a").nodes[0].short) == {"a.b/gpu": 2.0, "a.b/fpga": 1.0}

    def test_no_more_than_five_are_shown(self):
        scene = Scene(*(node(f"n{n}") for n in range(9)))
        scene.see(pod("a"))
        assert len(explained(scene, "a").nodes) == 5
        assert len(explained(scene, "a", most_nodes=20).nodes) == 9

    def test_the_job_s_work_and_what_it_is_owed_are_those_of_the_plan(self):
        # One pod of 500 of 1,000 runs and one waits, each 60 s: 2 x 60 x 0.5 = 60 s of the cluster; the fair share is
        # all, and half of it is used.
        scene = Scene(node("n1", memory=0))
        scene.see(pod("runs", 500, job="j", gates=(), node="n1"), pod("a", 500, job="j"))
        found = explained(scene, "a")
        assert found.work == pytest.approx(60.0)
        assert found.owed == pytest.approx(0.5)


class TestState:
    def test_a_bound_pod_says_where_it_is_whether_we_chose_that_and_what_the_node_has(self):
        scene = Scene(node("n1"))
        scene.see(pod("a", 300, gates=(), node="n1", promised="n1", nominated="n1"))
        found = explained(scene, "a")
        assert (found.state, found.node, found.ours, found.reason) == ("bound", "n1", True, None)
        assert found.use == {"cpu": Use(300.0, 1000.0), "memory": Use(0.0, 1000.0)}

    def test_a_bound_pod_that_is_being_deleted_says_so(self):
        scene = Scene(node("n1"))
        scene.see(pod("a", gates=(), node="n1", leaving=True))
        assert (explained(scene, "a").state, explained(scene, "a").leaving) == ("bound", True)

    def test_a_pod_that_went_elsewhere_says_so(self):
        scene = Scene(node("n1"), node("n2"))
        scene.see(pod("a", gates=(), node="n2", promised="n1"))
        assert explained(scene, "a").ours is False

    def test_a_released_pod_says_what_kube_scheduler_said(self):
        scene = Scene(node("n1"))
        scene.see(pod("a", gates=(), promised="n1", nominated="n1", unschedulable=True))
        found = explained(scene, "a", refusal=Refusal("0/1 nodes are available"))
        assert (found.state, found.node, found.refusal) == ("released", "n1", "0/1 nodes are available")

    @pytest.mark.parametrize("by_filter", [False, True])
    def test_a_pod_that_lost_its_nomination_is_nominated_no_more(self, by_filter):
        # kube-scheduler refused it, and took the nomination away; our annotation stays.
        scene = Scene(node("n1"), by_filter=by_filter)
        scene.see(pod("a", 2000, gates=(), promised="n1", unschedulable=True))
        assert explained(scene, "a").nominated is None

    def test_a_pod_that_is_not_ours_has_its_refusal(self):
        scene = Scene(node("n1"))
        scene.see(pod("a", gates=(), owner_kind="DaemonSet"))
        found = explained(scene, "a", refusal=Refusal("0/1 nodes are available", since=70.0))
        assert (found.state, found.refusal, found.refused_seconds) == ("not ours", "0/1 nodes are available", 30.0)

    def test_a_pod_without_a_gate_has_its_reason_its_refusal_and_its_place_like_a_held_one(self):
        # 1,000 of CPU, 800 of which are taken: of two of 300 none fits; if the node were empty both would.
        scene = Scene(node("n1"), by_filter=True)
        scene.see(pod("runs", 800, gates=(), node="n1"), pod("held", 300, job="j", created=1.0))
        scene.see(pod("a", 300, job="j", gates=(), created=2.0, unschedulable=True))
        found = explained(scene, "a", refusal=Refusal("0/1 nodes are available", since=70.0))
        assert (found.state, found.reason.kind) == ("without a gate", "no-room")
        assert (found.refusal, found.refused_seconds) == ("0/1 nodes are available", 30.0)
        assert found.position == Position(placed=False, before=0, in_queue=0)  # of one class those without a gate first
        assert explained(scene, "held").position == Position(placed=False, before=1, in_queue=1)
        assert found.change == ["0.1 cores more free on node n1"]

    def test_where_order_is_by_gates_a_pod_without_one_is_released(self):
        scene = Scene(node("n1"))
        scene.see(pod("a", gates=()))
        assert (explained(scene, "a").state, explained(scene, "a").reason) == ("released", None)

    def test_a_pod_that_names_a_queue_which_it_may_not_use_says_in_which_one_it_counts(self):
        scene = Scene(node("n1"), queues=(Queue("default"),))
        identity = Identity(job="a", queue="nosuch", named="nosuch")
        scene.see(replace(pod("a"), identity=identity), pod("b", 500, gates=(), node="n1", queue="default"))
        found = explained(scene, "a")
        assert (found.queue, found.share, found.fair_share) == ("default", 0.5, 1.0)
        assert found.problem == "there is no queue nosuch; it counts in default"

    @pytest.mark.parametrize("by_filter", [False, True])
    def test_a_pod_that_only_gates_of_others_hold_is_not_released_and_says_which(self, by_filter):
        scene = Scene(node("n1"), by_filter=by_filter)
        scene.see(pod("a", gates=(KUEUE,)))
        found = explained(scene, "a", new_pods=NewPods(True, "x"))
        assert (found.state, found.reason.kind) == ("held by gates of others", "gates")
        assert list(found.change) == [f"the gate {KUEUE} must be removed, by whoever set it"]
        assert found.new_pods == "are held: x"

    @pytest.mark.parametrize(
        ("told", "new_pods", "said"),
        [
            ({}, NewPods(True, "somebody waits for room", 90.0), "are held, for 1 min 30 s: somebody waits for room"),
            (
                {},
                NewPods(False, "nobody waits for room"),
                "are not held: nobody waits for room; this one keeps its gate",
            ),
            ({"gates": ()}, NewPods(True, "x"), "are held: x; this one has no gate, and never gets one"),
            ({"gates": ()}, NewPods(False, "x"), "are not held: x"),
            ({"group": "d/g"}, NewPods(False, "x"), "are not held: x; pods of gangs are held at any time"),
            (
                {},
                NewPods(None),
                "are not held: this cluster has no Hold, so filter alone keeps the order; this one came",
            ),
            ({}, NewPods(None, unread="403"), "may be held or not: the Hold cannot be read (403)"),
        ],
    )
    def test_a_pod_that_waits_says_whether_new_pods_are_held(self, told, new_pods, said):
        scene = Scene(node("n1"), by_filter=True)
        scene.see(pod("a", 2000, **told))
        assert explained(scene, "a", new_pods=new_pods).new_pods.startswith(said)

    def test_a_pod_that_runs_says_nothing_of_new_pods(self):
        scene = Scene(node("n1"), by_filter=True)
        scene.see(pod("a", gates=(), node="n1"))
        assert explained(scene, "a", new_pods=NewPods(True, "x")).new_pods == ""

    @pytest.mark.parametrize(
        ("told", "state"),
        [
            ({"finished": True}, "finished"),
            ({"finished": True, "failed": True}, "failed"),
            ({"leaving": True}, "being deleted"),
            ({"gates": (), "owner_kind": "DaemonSet"}, "not ours"),
            ({}, "held"),
        ],
    )
    def test_every_pod_has_a_state(self, told, state):
        scene = Scene(node("n1"))
        scene.see(pod("a", **told))
        assert explained(scene, "a").state == state


class TestChange:
    def test_without_control_held_pods_wait_for_it_and_refused_ones_for_the_next_event(self):
        scene = Scene(node("n1"), by_filter=True)
        scene.see(pod("held"), pod("tried", gates=()), pod("refused", gates=(), unschedulable=True))
        first = {name: explained(scene, name, unled="no Lease").change[0] for name in ("held", "tried", "refused")}
        assert explained(scene, "held", unled="no Lease").reason.kind == "pace"
        assert explained(scene, "held", unled="no Lease").change == [first["held"]]
        assert first["held"] == "`dovetail control` must run, as it alone releases held pods: no Lease"
        assert first["tried"].startswith("nothing: kube-scheduler has it in its queue")
        assert first["refused"].startswith("nobody wakes it in its turn (no Lease): kube-scheduler tries it again when")

    def test_what_is_refused_although_it_would_fit_waits_for_what_it_was_refused_for(self):
        scene = Scene(node("n1"), by_filter=True)
        scene.see(pod("a", gates=(), unschedulable=True))
        changes = change(scene, "a")
        assert changes[0] == "what kube-scheduler refused it for must change, unless that was room or its turn"
        assert changes[1].startswith("else nothing: kube-scheduler tries it again when")

    def test_room_names_the_node_that_lacks_least(self):
        assert change(two_nodes(pod("a", 500)), "a") == [
            "0.1 cores more free on node n2 (it lacks least), or enough on the other"
        ]

    def test_room_names_no_node_where_several_lack_alike(self):
        scene = Scene(node("n1"), node("n2"), node("n3"))
        scene.see(
            *(pod(f"on-{name}", cpu, gates=(), node=name) for name, cpu in (("n1", 900), ("n2", 900), ("n3", 950)))
        )
        scene.see(pod("a", 500))
        assert change(scene, "a") == ["0.4 cores more free on any of 2 nodes (they lack least), or enough on the other"]

    def test_of_two_resources_the_one_that_lacks_more_says_which_node_lacks_least(self):
        # n1 lacks 10 % of its CPU and of its memory; n2 lacks 40 % of its CPU alone.
        both = {"cpu": 600.0, "memory": 600.0}
        scene = Scene(node("n1"), node("n2"))
        scene.see(pod("b", both, gates=(), node="n1"), pod("c", 900, gates=(), node="n2"))
        scene.see(pod("a", {"cpu": 500.0, "memory": 500.0}))
        assert change(scene, "a")[0].endswith("free on node n1 (it lacks least), or enough on the other")

    def test_room_is_looked_for_only_where_it_would_be_large_enough_if_it_were_empty(self):
        # 1.5 of CPU: n1 has 1 in all; n2 has 2, of which 1.9 are taken: 1.4 more.
        scene = Scene(node("n1"), node("n2", cpu=2000))
        scene.see(pod("runs", 1900, gates=(), node="n2"), pod("a", 1500))
        assert change(scene, "a") == ["1.4 cores more free on node n2"]

    def test_gates(self):
        scene = Scene(node("n1"))
        scene.see(pod("a", gates=(HOLD_GATE, KUEUE)))
        assert change(scene, "a") == [f"the gate {KUEUE} must be removed, by whoever set it"]

    def test_a_pod_group_that_is_not_complete(self):
        scene = Scene(node("n1"))
        scene.apply(GroupSeen(Group("default/g", 3)))
        scene.see(pod("g0", job="g", group="default/g"))
        assert change(scene, "g0") == ["2 more pods of pod group default/g must be created (1 of 3)"]

    def test_a_pod_group_of_which_others_hold_some(self):
        scene = Scene(node("n1"))
        scene.see(pod("g0", job="g", group="default/g", least=2))
        scene.see(pod("g1", job="g", group="default/g", least=2, gates=(HOLD_GATE, KUEUE)))
        assert change(scene, "g0") == [
            f"the gate {KUEUE} must be removed from others of pod group default/g, by whoever set it"
        ]

    def test_a_pod_group_that_does_not_fit(self):
        scene = Scene(node("n1"), node("n2"))
        scene.see(pod("runs", 500, gates=(), node="n1"))
        scene.see(*(pod(f"g{n}", 600, job="g", group="default/g", least=2) for n in range(2)))
        assert change(scene, "g0") == ["enough room for 2 pods of pod group default/g at once must be free"]

    def test_pace(self):
        scene = Scene(node("n1"), pace=Pace(unbound_pods=1))
        scene.see(pod("a"))
        assert change(scene, "a")[0].startswith("nothing: pods go a few at a time (control.unboundPods)")

    def test_turn(self):
        scene = Scene(node("n1"))
        scene.see(*(pod(f"p{n}", 400, job="j", created=float(n)) for n in range(3)))
        assert change(scene, "p2") == [
            "the 2 pods that the plan places now must have their nodes, and room be left or come free",
            "now 1 node has room for it, which goes to them",
        ]

    def test_share(self):
        scene = Scene(node("n1"), queues=(Queue("rich"), Queue("poor")))
        scene.see(pod("has", 600, queue="rich", gates=(), node="n1"))
        scene.see(pod("more", 300, queue="rich"), pod("first", 300, queue="poor"))
        assert change(scene, "more")[0] == "queue rich must fall below its fair share of 50.0 % (it has 60.0 %)"

    def test_room_that_is_reserved_for_others(self):
        # `large` is due: when `has` ends it goes, and the 400 that are free until then are kept.
        scene = Scene(node("n1"), queues=(Queue("rich"), Queue("poor")))
        scene.see(pod("large", 500, queue="poor"))
        scene.now += LONG_SECONDS
        scene.see(pod("has", 600, queue="rich", gates=(), node="n1", started=scene.now))
        scene.see(pod("more", 300, queue="rich"))
        assert change(scene, "more") == ["those for whom room is reserved must start, on n1"]

    def test_input_that_cannot_be_read_names_the_nodes_that_hold_it(self):
        # n2 is full and has 20 of disk read to spare, of the 50 that a reader takes; n1 has room for one.
        scene = Scene(*(Node(name, {"cpu": 100.0, "disk-read": 100.0, "network-in": 100.0}) for name in ("n1", "n2")))
        scene.see(pod("runs", {"cpu": 100.0, "disk-read": 80.0}, gates=(), node="n2"), pod("first", created=1.0))
        scene.see(pod("reader", {"cpu": 100.0, "disk-read": 50.0}, created=3.0, inputs=(("n2", 1.0), ("gone", 1.0))))
        assert scene.why()["reader"].kind == "input"
        assert change(scene, "reader") == [
            "disk read or network out must come free on n2, or network in on a node with room"
        ]

    def test_input_that_no_node_could_read_fast_enough_needs_faster_nodes_or_a_lower_demand(self):
        # The disk of n1, which holds the input, gives 50, its link 20; and n1 has too little CPU to read it there.
        rates = {"network-in": 100.0, "disk-read": 50.0}
        scene = Scene(
            Node("n1", {**rates, "cpu": 99.0, "network-out": 20.0}),
            Node("n2", {**rates, "cpu": 100.0, "network-out": 100.0}),
        )
        scene.see(pod("reader", {"cpu": 100.0, "disk-read": 50.0}, inputs=(("n1", 1.0),)))
        assert scene.why()["reader"].kind == "too-large"
        assert explained(scene, "reader").position is None
        assert change(scene, "reader") == ["n1 must offer more disk read and network out, or it must declare less"]

    def test_a_pod_that_is_too_large(self):
        scene = Scene(node("n1"))
        scene.see(pod("a", 1500))
        assert change(scene, "a") == ["a node with cpu 1.5 cores must be added (the most is 1 core now)"]

    def test_a_pod_that_daemon_sets_keep_off_every_node_needs_a_larger_one(self):
        scene = Scene(node("n1"))
        scene.see(pod("agent", 100, gates=(), node="n1", owner_kind="DaemonSet"), pod("a", 950))
        assert scene.why()["a"].kind == "too-large"
        assert change(scene, "a") == [
            "a node with cpu 0.95 cores beside its DaemonSets' and static pods must be added "
            "(the most is 0.9 cores now)"
        ]

    def test_a_gang_that_is_too_large_for_all_nodes_together(self):
        # Each of the two nodes holds one pod of 700.
        scene = Scene(node("n1"), node("n2"))
        scene.see(*(pod(f"g{n}", 700, job="g", group="default/g", least=3) for n in range(3)))
        assert scene.why()["g0"].kind == "too-large"
        assert explained(scene, "g0").position is None
        assert change(scene, "g0") == [
            "nodes must be added until 3 pods of pod group default/g fit at once (empty, those that allow this pod "
            "hold 2 like it), or the group must need fewer"
        ]

    def test_a_gang_that_reads_and_is_too_large_counts_what_each_node_holds_with_what_it_reads_there(self):
        # n1 holds the input, and its disk serves one of the two that its CPU holds. n2 holds none: no link limits it.
        scene = Scene(Node("n1", {"cpu": 200.0, "disk-read": 50.0}), Node("n2", {"cpu": 100.0}))
        scene.apply(NodeSeen(Node("n3", {"cpu": 100.0}, unschedulable=True)))
        reads, gang = {"cpu": 100.0, "disk-read": 50.0}, {"job": "g", "group": "default/g", "least": 4}
        scene.see(*(pod(f"g{n}", reads, inputs=(("n1", 1.0),), **gang) for n in range(4)))
        assert scene.why()["g0"].kind == "too-large"
        assert change(scene, "g0") == [
            "nodes must be added until 4 pods of pod group default/g fit at once (empty, those that allow this pod "
            "hold 2 like it), or the group must need fewer"
        ]

    @pytest.mark.parametrize(
        ("more", "constraints", "said"),
        [
            (
                {},
                Constraints(selector=(("disk", "ssd"),)),
                "a node must carry the labels of its node selector: disk=ssd",
            ),
            ({}, Constraints(terms=()), "node n1 must meet its required node affinity"),
            (
                {"taints": (Taint("gpu", "", "NoSchedule"),)},
                Constraints(),
                "a taint that it does not tolerate must go from node n1",
            ),
            ({"unschedulable": True}, Constraints(), "node n1 must be uncordoned"),
            (
                {"unschedulable": True, "taints": (Taint(UNSCHEDULABLE_TAINT, "", "NoSchedule"),)},
                Constraints(),
                "node n1 must be uncordoned",
            ),
            (
                {"unschedulable": True, "taints": (Taint("gpu", "", "NoSchedule"),)},
                Constraints(),
                "a taint that it does not tolerate must go from node n1",
            ),
            ({}, Constraints(volumes=((),)), "node n1 must meet the node affinity of its volumes"),
        ],
        ids=["selector", "affinity", "taint", "cordon", "cordon-by-taint", "taint-and-cordon", "volume"],
    )
    def test_who_is_barred_learns_by_what(self, more, constraints, said):
        scene = Scene(node("n1", **more))
        scene.see(pod("a", constraints=constraints))
        assert change(scene, "a") == [said]

    def test_without_nodes_one_must_be_added(self):
        scene = Scene()
        scene.see(pod("a"))
        assert change(scene, "a") == ["a node must be added"]


def test_amounts_are_in_the_units_of_people():
    assert [amount("cpu", 1200), amount("cpu", 1000), amount("cpu", 250_000)] == ["1.2 cores", "1 core", "250 cores"]
    assert [amount("memory", 3.5 * 2**30), amount("disk-read", 120e6), amount("a.b/gpu", 2)] == [
        "3.5 GiB",
        "120 MB/s",
        "2",
    ]


def test_times_have_two_units_at_most():
    assert [seconds(it) for it in (0.4, 42, 60, 185, 7800, 90_000, 273_600)] == [
        "0 s", "42 s", "1 min", "3 min 5 s", "2 h 10 min", "1 d 1 h", "3 d 4 h",
    ]  # fmt: skip

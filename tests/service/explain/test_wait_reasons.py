"""Why each held pod waits."""

from dataclasses import replace

import pytest

from extender.cluster.eligibility import Constraints
from extender.cluster.events import GroupSeen
from extender.cluster.model import HOLD_GATE, Group, Node
from extender.cluster.pods.opportunistic import ONLY
from extender.cluster.queues import Queue
from extender.control.backlog.backlog import Backlog
from extender.control.backlog.gangs import gangs_of
from extender.control.release.slots import Pace
from extender.explain import wait_reasons as reasons
from extender.explain.advice import changes_for
from extender.explain.pod_in_plan import case_of
from extender.explain.position import position_of
from extender.explain.wait_reasons import IS_PACED, KINDS, Reason, counted, line_of
from extender.planner import Policy
from tests.service.control.scene import Scene, node, pod
from tests.service.costs import calls_of

classes_of = Backlog.classes
KUEUE = "kueue.x-k8s.io/admission"


def busy(*pods, **options):
    """Return a scene with a node of 1,000 of CPU of which 800 are taken."""
    scene = Scene(node("n1"), **options)
    scene.see(pod("runs", 800, gates=(), node="n1"), *pods)
    return scene


def test_a_pod_without_room_waits_for_what_is_short():
    assert busy(pod("a", 300)).why() == {"a": Reason("no-room", "no node has enough free: mostly cpu is short")}


def test_a_pod_for_idle_resources_alone_waits_for_these_and_takes_no_regular_room_from_others():
    # n1 has 200 free: `only` never gets them, however long it waits, so the plan places b there.
    only = pod("only", 150, choice=ONLY, opportunistic=True, created=1.0)
    scene = busy(only, pod("b", 200, created=2.0))
    assert scene.why() == {"only": reasons.AWAITS_IDLE_ROOM, "b": IS_PACED}
    assert position_of(case_of(scene.view(), only), Policy()) is None
    idle = ["pods of a node that allows it must use so much less of what they reserved there"]
    assert changes_for(case_of(scene.view(), only), reasons.AWAITS_IDLE_ROOM) == idle


def test_a_pod_for_idle_resources_alone_that_no_node_allows_is_told_so():
    only = pod("only", choice=ONLY, opportunistic=True, constraints=Constraints(selector=(("disk", "ssd"),)))
    scene = busy(only)
    why = scene.why()["only"]
    assert why.kind == "barred"
    said = ["a node must carry the labels of its node selector: disk=ssd"]
    assert changes_for(case_of(scene.view(), only), why) == said


def test_gates_of_others_are_named_and_sorted():
    scene = Scene(node("n1"))
    scene.see(pod("a", gates=("z.example/last", HOLD_GATE, KUEUE)))
    assert scene.why() == {"a": Reason("gates", f"waits for gates of others: {KUEUE}, z.example/last")}


def test_a_pod_group_says_how_many_of_it_are_there():
    scene = Scene(node("n1"))
    scene.apply(GroupSeen(Group("default/g", 3)))
    scene.see(*(pod(f"g{n}", job="g", group="default/g") for n in range(2)))
    assert set(scene.why().values()) == {Reason("gang", "its pod group has 2 of 3 pods")}


def test_pods_of_a_group_that_ended_before_we_started_count_as_they_do_for_its_minimum():
    # g0 ended well, g1 waits and is of the same Job: one more is missing, not two.
    scene = Scene(node("n1"))
    scene.see(pod("g0", job="g", group="default/g", least=3, owner="job", gates=(), node="n1", finished=True))
    scene.see(pod("g1", job="g", group="default/g", least=3, owner="job"))
    (gang,) = gangs_of(scene.backlog, scene.backlog.classes()).values()
    assert gang.missing == 1
    assert scene.why() == {"g1": Reason("gang", "its pod group has 2 of 3 pods")}


def test_a_pod_group_some_of_which_others_hold_says_so():
    scene = Scene(node("n1"))
    scene.see(pod("g0", job="g", group="default/g", least=2))
    scene.see(pod("g1", job="g", group="default/g", least=2, gates=(HOLD_GATE, KUEUE)))
    text = "not all 2 pods of its pod group may start yet: gates of others hold some"
    assert scene.why()["g0"] == Reason("gang", text)


def test_a_pod_of_a_group_that_is_being_deleted_is_one_that_is_missing():
    scene = Scene(node("n1"))
    scene.see(pod("g0", job="g", group="default/g", least=2))
    scene.see(pod("g1", job="g", group="default/g", least=2, gates=(), node="n1", leaving=True))
    assert scene.why()["g0"] == Reason("gang", "its pod group has 1 of 2 pods")


def test_a_pod_group_that_is_too_large_for_what_is_free_says_so():
    scene = busy(*(pod(f"g{n}", 150, job="g", group="default/g", least=2) for n in range(2)))
    assert scene.why()["g0"] == Reason("gang", "its gang of 2 does not fit in one plan")


def test_a_pod_whose_write_has_not_begun_is_being_released_and_is_not_planned_again():
    scene = Scene(node("n1"))
    scene.see(pod("a"))
    scene.backlog.writes.queue("uid-a")  # and the claim on it has ended, as after a clock was set forward
    (task_class,) = scene.backlog.classes()
    assert scene.backlog.ready(task_class) == 0
    assert scene.why() == {"a": reasons.IS_RELEASING}


def test_whom_the_plan_places_waits_for_the_pace():
    scene = Scene(node("n1"), pace=Pace(unbound_pods=1))
    scene.see(*(pod(f"p{n}", job="j", created=float(n)) for n in range(3)))
    scene.step()
    assert scene.why() == {"p1": reasons.IS_PACED, "p2": reasons.IS_PACED}


def test_a_pod_that_is_being_written_to_is_being_released():
    scene = Scene(node("n1"))
    scene.deaf = True
    scene.see(pod("a"))
    scene.step()
    assert scene.why() == {"a": reasons.IS_RELEASING}


def test_a_pod_with_our_nomination_is_being_released():
    scene = Scene(node("n1"))
    scene.see(pod("a", nominated="n1", promised="n1"))
    assert scene.why() == {"a": reasons.IS_RELEASING}


def test_a_pod_that_could_not_be_written_to_is_still_being_released_and_says_so():
    # 100 of CPU are left for one pod of two: the first, whose turn goes to the second while it rests.
    scene = Scene(node("n1", cpu=100))
    scene.see(pod("a", job="j", created=1.0), pod("b", job="j", created=2.0))
    scene.refuse = {("nominate", "a"), ("nominate", "b")}
    scene.step()
    assert scene.why() == {"a": reasons.WRITE_FAILED, "b": reasons.IS_PACED}
    assert reasons.WRITE_FAILED.kind == reasons.RELEASING


def test_of_one_class_the_older_are_paced_and_the_others_wait_for_their_turn():
    # 1,000 of CPU, pods of 400: two fit.
    scene = Scene(node("n1"))
    scene.see(*(pod(f"p{n}", 400, job="j", created=float(n)) for n in range(3)))
    assert scene.why() == {"p0": reasons.IS_PACED, "p1": reasons.IS_PACED, "p2": reasons.OTHERS_FIRST}


def test_the_line_of_a_class_is_read_as_often_however_many_of_it_the_plan_places(monkeypatch):
    """It is read under the backlog's lock."""
    read = []
    monkeypatch.setattr(reasons, "line_of", lambda backlog, of: read.append(of) or line_of(backlog, of))
    scene = Scene(node("n1", cpu=10_000))
    for number in range(2, 42, 20):
        scene.see(*(pod(f"p{n}", job="j") for n in range(number)))
        read.clear()
        assert len(scene.view().plan.assignments) == number
        assert len(read) == 2


def test_all_pod_groups_that_miss_pods_are_counted_in_one_pass(monkeypatch):
    passes, passes_of = [], {}
    monkeypatch.setattr(Backlog, "classes", lambda backlog: passes.append(1) or classes_of(backlog))
    scene = Scene(node("n1"))
    for number in (2, 20):
        scene.see(*(pod(f"g{n}", job=f"g{n}", group=f"default/g{n}", least=2) for n in range(number)))
        passes.clear()
        assert len(scene.why()) == number
        passes_of[number] = len(passes)
    assert passes_of[2] == passes_of[20]


def test_a_pod_that_fits_but_for_a_higher_priority_says_so():
    scene = Scene(node("n1"))
    scene.see(pod("low", 600), pod("high", 600, priority=10))
    assert scene.why()["low"] == reasons.HIGHER_FIRST


def test_a_queue_that_has_its_share_lets_others_go_first():
    # Of 1,000 `rich` holds 600; its share is half. 400 are free: `poor` goes.
    scene = Scene(node("n1"), queues=(Queue("rich"), Queue("poor")))
    scene.see(pod("has", 600, queue="rich", gates=(), node="n1"))
    scene.see(pod("more", 300, queue="rich"), pod("first", 300, queue="poor"))
    assert scene.why() == {"first": reasons.IS_PACED, "more": reasons.BELOW_SHARE_FIRST}


def test_what_a_queue_below_its_share_cannot_use_others_may_have_and_what_comes_free_is_kept_for_it():
    # Of 1,000 `rich` holds 600; its share is half. 400 are free: too little for the 500 of `poor`. Of what `has` leaves
    # `poor` has its 500, and then `rich` 300 more.
    scene = Scene(node("n1"), queues=(Queue("rich"), Queue("poor")))
    scene.see(pod("has", 600, queue="rich", gates=(), node="n1"))
    scene.see(pod("more", 300, queue="rich"), pod("large", 500, queue="poor"))
    scene.step()
    assert scene.nominated() == {"more": "n1"}
    scene.bind("more")
    scene.see(pod("again", 300, queue="rich"))
    scene.step()
    assert scene.why()["large"].text.endswith("room is reserved for it on n1")
    scene.end("has")
    scene.step()
    assert scene.nominated() == {"more": "n1", "large": "n1"}


def test_where_nobody_goes_first_the_planner_s_own_reason_stands():
    scene = Scene(node("n1"))
    scene.see(pod("a", constraints=Constraints(selector=(("disk", "ssd"),))), pod("big", 1001), pod("goes", 600))
    why = scene.why()
    assert (why["a"].kind, why["big"].kind, why["goes"].kind) == ("barred", "too-large", "pace")


def test_the_same_state_gives_the_same_words():
    scene = busy(pod("a", 300), pod("b", 150), pod("c", 150))
    first = scene.why()
    assert scene.why() == first


def test_pods_without_a_gate_wait_for_the_same_reasons_and_in_their_turn_for_kube_scheduler():
    # 1,000 of CPU, pods of 400: two fit.
    scene = Scene(node("n1"), by_filter=True)
    scene.see(*(pod(f"p{n}", 400, job="j", gates=(), created=float(n), unschedulable=n > 0) for n in range(3)))
    assert scene.why() == {"p0": reasons.IS_TRIED, "p1": reasons.IS_TRIED_AGAIN, "p2": reasons.OTHERS_FIRST}


def test_of_one_class_pods_without_a_gate_go_first():
    scene = Scene(node("n1", cpu=500), by_filter=True)
    scene.see(pod("held", 400, job="j", created=1.0), pod("ungated", 400, job="j", gates=(), created=2.0))
    assert scene.why() == {"ungated": reasons.IS_TRIED, "held": reasons.OTHERS_FIRST}


def test_held_pods_do_not_wait_for_the_pace_while_pods_without_a_gate_that_go_before_them_are_refused():
    # There is room for all. Their turns come to nothing, so in the end the release loop leaves their class out.
    scene = Scene(node("n1"), by_filter=True)
    scene.see(*(pod(f"p{n}", job="j", gates=(), created=float(n), unschedulable=True) for n in range(2)))
    scene.see(pod("held", job="j", created=2.0), pod("other", job="k"))
    why = scene.why()
    refused = Reason("refused", "kube-scheduler refuses pod default/p0, which asks for the same")
    assert why == {"p0": reasons.IS_TRIED_AGAIN, "p1": reasons.IS_TRIED_AGAIN, "held": refused, "other": IS_PACED}
    case = case_of(scene.view(), scene.pods["held"])
    (change,) = changes_for(case, refused)
    assert change.startswith("these 2 pods must be bound, or deleted: see their events")


def test_pods_are_counted_by_kind_and_every_kind_is_there():
    counts = counted([Reason("no-room", "x"), Reason("no-room", "y"), reasons.IS_PACED])
    assert (counts["no-room"], counts["pace"], counts["gates"]) == (2, 1, 0)
    assert set(counts) == set(KINDS)


@pytest.mark.parametrize("changes", [{"gates": ()}, {"finished": True}, {"leaving": True}])
def test_a_pod_that_is_not_held_has_no_reason(changes):
    scene = Scene(node("n1"))
    scene.see(replace(pod("a"), **changes))
    assert scene.why() == {}


def test_a_queue_that_has_its_share_but_some_of_which_go_is_not_told_of_shares():
    # 600 of 1,000 are `rich`'s. `urgent` of that queue goes and `first` as well: not only others are before `more`.
    scene = Scene(node("n1"), queues=(Queue("rich"), Queue("poor")))
    scene.see(pod("has", 600, queue="rich", gates=(), node="n1"))
    scene.see(pod("urgent", 200, queue="rich", priority=5), pod("first", 200, queue="poor"), pod("more", queue="rich"))
    assert scene.why()["more"] == reasons.OTHERS_FIRST


def test_room_on_a_node_that_does_not_allow_it_is_no_room():
    # n1 has room and is cordoned; n2 is full but for `goes`.
    scene = Scene(node("n1", unschedulable=True), node("n2"))
    scene.see(pod("runs", 900, gates=(), node="n2"), pod("goes", 50), pod("a", 300))
    assert scene.why()["a"].kind == "no-room"


def test_a_released_pod_whose_nomination_is_being_cleared_is_not_held():
    scene = Scene(node("n1"))
    scene.deaf = True
    scene.see(pod("a", gates=(), promised="gone", nominated="gone", unschedulable=True))
    scene.step()
    assert scene.written == [("clear", "a")]
    assert scene.why() == {}


def test_a_pod_whose_input_cannot_be_read_is_not_told_that_it_would_fit():
    # n1 has room for one; n2 holds the input, is full, and has 20 of the 50 to spare that a reader takes of its disk.
    room, reads = {"cpu": 100.0, "disk-read": 100.0, "network-in": 100.0}, {"cpu": 100.0, "disk-read": 50.0}
    scene = Scene(*(Node(name, room) for name in ("n1", "n2")))
    scene.see(pod("runs", {"cpu": 100.0, "disk-read": 80.0}, gates=(), node="n2"))
    scene.see(pod("first", created=1.0, duration=1.0))
    scene.see(pod("plain", reads, created=2.0), pod("reader", reads, created=3.0, inputs=(("n2", 1.0),)))
    assert scene.why() == {"first": IS_PACED, "plain": reasons.OTHERS_FIRST, "reader": reasons.INPUT_IS_BUSY}
    scene.end("runs")
    assert scene.why() == {"first": IS_PACED, "plain": IS_PACED, "reader": reasons.OTHERS_FIRST}


def test_the_cost_of_reasons_grows_with_the_pods_not_with_the_refused_ones_times_those_that_wait_for_them():
    def calls(count):
        scene = busy()
        scene.see(*(pod(f"refused-{n}", 300, job="r", gates=(), unschedulable=True) for n in range(count)))
        scene.see(*(pod(f"held-{n}", 300) for n in range(count)))
        order = scene.view()
        made_of = order.backlog, order.input_builder, order.snapshot, order.plan_input, order.plan
        assert reasons.reasons(*made_of)["uid-held-0"].kind == reasons.REFUSED
        return calls_of(lambda: reasons.reasons(*made_of))

    assert calls(400) < 5 * calls(100)


def test_a_pod_of_a_group_that_was_released_counts_for_it_also_where_nothing_else_of_its_queue_is_there():
    # The launcher never had a gate, kube-scheduler has yet to try it, and it is all that its queue has.
    scene = Scene(node("n1"))
    gang = {"job": "g", "group": "default/g", "least": 2}
    scene.see(pod("launcher", queue="launchers", gates=(), **gang), pod("worker", **gang))
    assert scene.why() == {"worker": IS_PACED}

"""What doctor says of the Hold, of pods without a gate, and of autoscalers (order: auto)."""

from dataclasses import replace

import pytest

from extender.explain.checks.holding import is_doubtful
from extender.explain.doctor import due_now, findings
from extender.explain.findings import Facts, LeaseState, Stated
from extender.explain.new_pods import NewPods
from tests.service.control.scene import Scene, node, pod

LEASE = LeaseState("dovetail-system/dovetail-control", "me", 1.0, 15.0)
HELD, PASS = NewPods(True, "somebody waits for room", 90.0), NewPods(False, "nobody waits for room", 90.0)
LONG = "held: somebody waits for room"


def scene_of(*pods):
    scene = Scene(node("n1"), by_filter=True)
    scene.see(*pods)
    return scene


FULL = (pod("runs", 900, gates=(), node="n1"), pod("waits", 300, gates=(), unschedulable=True))


def found(check, *pods, again=(), **told):
    """Return level and text of a check; `again` are the pods at the second look, 4 s later."""
    now = scene_of(*pods).view()
    later = scene_of(*again).view(4.0) if again else None
    known = {"lease": LEASE, "filter_calls": "no", "configuration": "no", "order": now, "later": later}
    facts = Facts(("dovetail",), **{"stated": Stated("auto"), **known, **told})
    return [(it.level, it.text) for it in findings(facts) if it.check == check]


class TestNewPods:
    @pytest.mark.parametrize(
        ("told", "said"),
        [
            (HELD, "new pods are held, for 1 min 30 s: somebody waits for room"),
            (PASS, "new pods are not held, for 1 min 30 s: nobody waits for room"),
            (NewPods(None), "new pods are not held: this cluster has no Hold, so filter alone keeps the order"),
        ],
    )
    def test_whether_they_are_held_is_said_with_the_reason(self, told, said):
        assert found("new pods", new_pods=told) == [("ok", said)]

    def test_nothing_is_said_where_the_order_never_changes_for_them(self):
        assert found("new pods") == []

    def test_a_hold_that_may_not_be_read_is_a_warning(self):
        (found_, *_) = found("new pods", new_pods=NewPods(None, unread="403"))
        assert found_ == ("warning", "new pods may be held or not: the Hold cannot be read (403)")

    @pytest.mark.parametrize(("lease", "since"), [(replace(LEASE, age_seconds=80.0), " for 1 min 20 s"), (None, "")])
    def test_held_in_vain_for_longer_than_serve_waits_is_a_problem(self, lease, since):
        ((level, text),) = found("new pods", *FULL, new_pods=HELD, lease=lease)
        assert level == "problem"
        assert text.endswith(f"; but nobody has led{since}, so nobody releases them")

    def test_held_while_another_replica_may_still_take_over_is_fine(self):
        (told,) = found("new pods", *FULL, new_pods=HELD, lease=replace(LEASE, age_seconds=59.0))
        assert told[0] == "ok"

    def test_a_hold_without_a_policy_is_a_warning(self):
        ((level, text),) = found("new pods", *FULL, new_pods=HELD, policy=False)
        assert level == "warning"
        assert text.endswith("no admission policy goes by that, so only pods that bring the gate themselves are held")
        assert found("new pods", *FULL, new_pods=HELD, policy=True)[0][0] == "ok"

    def test_a_hold_that_says_twice_what_the_plan_does_not_is_a_warning(self):
        room = (pod("runs", gates=(), node="n1"),)
        ((level, text),) = found("new pods", *room, again=room, new_pods=HELD, new_pods_later=HELD)
        assert (level, text.rpartition("; ")[2]) == ("warning", "but nobody waited for room, neither now nor 4 s later")
        ((level, text),) = found("new pods", *FULL, again=FULL, new_pods=PASS, new_pods_later=PASS)
        assert (level, text.rpartition("; ")[2]) == ("warning", "but somebody waited, now and 4 s later")

    def test_a_hold_that_says_what_control_decided_is_fine(self):
        # The plan does not know that `control` leaves a class out whose turns nobody uses.
        known = {"again": FULL, "new_pods": PASS, "new_pods_later": PASS}
        assert found("new pods", *FULL, held_why=PASS.why, **known)[0][0] == "ok"
        assert found("new pods", *FULL, held_why=HELD.why, **known)[0][0] == "warning"

    def test_one_that_has_caught_up_at_the_second_look_is_fine(self):
        assert found("new pods", *FULL, again=FULL, new_pods=PASS, new_pods_later=HELD)[0][0] == "ok"

    def test_where_pods_are_always_held_nobody_need_wait(self):
        stated = Stated("auto", always_held="reclaim acts for held pods alone")
        room = (pod("runs", gates=(), node="n1"),)
        told = found("new pods", *room, again=room, new_pods=HELD, new_pods_later=HELD, stated=stated)
        assert told[0][0] == "ok"


class TestIsDoubtful:
    def test_what_the_hold_says_against_the_plan_unless_it_was_written_just_now(self):
        full, room = scene_of(*FULL).view(), scene_of().view()
        assert (is_doubtful(full, PASS, ""), is_doubtful(full, HELD, "")) == (True, False)
        assert (is_doubtful(room, HELD, ""), is_doubtful(room, PASS, "")) == (True, False)
        assert not is_doubtful(full, replace(PASS, seconds=5.0), "")
        assert not is_doubtful(full, None, "")

    def test_who_fits_on_no_node_does_not_wait_for_room(self):
        assert not is_doubtful(scene_of(pod("huge", 2000, gates=())).view(), PASS, "")


class TestTurns:
    DUE = (pod("a", gates=(), unschedulable=True), pod("b", gates=(), unschedulable=True))

    def test_pods_that_would_fit_and_are_not_bound_are_a_warning(self):
        text = "2 pods without a gate would fit in their turn, and none got a node in 4 s"
        assert found("turns", *self.DUE, again=self.DUE) == [("warning", text)]
        assert due_now(scene_of(*self.DUE).view())

    def test_pods_that_go_on_are_fine(self):
        gone = (replace(self.DUE[0], node="n1"), self.DUE[1])
        text = "pods without a gate go on: 1 of 2 whose turn it was did meanwhile"
        assert found("turns", *self.DUE, again=gone) == [("ok", text)]

    def test_pods_whose_turn_it_is_not_are_counted(self):
        text = "1 pod without a gate waiting, none of which fits now in its turn"
        assert found("turns", *FULL) == [("ok", text)]

    def test_where_none_waits_it_says_so(self):
        assert found("turns") == [("ok", "no pod without a gate waits")]

    def test_with_gates_nothing_is_said_of_them(self):
        assert found("turns", *FULL, stated=Stated("gates")) == []


def test_an_autoscaler_is_named_with_what_it_sees():
    name = ("Deployment kube-system/cluster-autoscaler",)
    text = f"{name[0]} may add nodes for pods that look unschedulable; without a gate these are 1 pod now"
    assert found("autoscaler", *FULL, autoscalers=name) == [("ok", text)]
    assert found("autoscaler", *FULL) == found("autoscaler", autoscalers=name, stated=Stated("gates")) == []

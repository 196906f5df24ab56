"""Whose turn it is: what filter is told about one pod at a time follows one plan over all."""

import pytest

from extender.cluster.eligibility import Requirement
from extender.cluster.events import NodeGone
from extender.cluster.queues import Queue
from extender.control.backlog.backlog import PodPhase
from extender.control.filter_order.order import GANG_WAITS, OTHERS_FIRST
from extender.planner import Policy
from tests.service.control.filter_order.asked import Asked, free
from tests.service.control.scene import node, pod

FAIR = Policy(fairness=0.9, srtf=0.0)


def test_as_many_pods_pass_as_the_plan_starts_and_the_others_wait_for_them():
    asked = Asked(node("a", 200))
    asked.see(*(free(name, job="j") for name in ("p", "q", "r")))
    assert asked.ask("p") == "a"
    assert asked.ask("q") == "a"
    assert asked.ask("r") == "no room"


def test_the_queue_that_is_owed_more_goes_first_whoever_is_asked_about_first():
    # 4 places; `small` has none of them, `big` has 2 already: the two that are left go to `small`.
    asked = Asked(node("a", 400), policy=FAIR)
    asked.see(*(free(f"big-{n}", queue="big", job="b") for n in range(4)))
    for name in ("big-0", "big-1"):
        asked.ask(name)
        asked.bind(name, "a")
    asked.see(*(free(f"small-{n}", queue="small", job="s") for n in range(4)))
    asked.now += 0.1
    assert asked.ask("big-2") == OTHERS_FIRST
    assert asked.ask("small-3") == "a"
    assert asked.ask("small-0") == "a"
    assert asked.ask("big-2") == "no room"


def test_weights_divide_the_places():
    # 6 places, weights 1 and 2: 2 and 4.
    asked = Asked(node("a", 600), queues=[Queue("one", 1.0), Queue("two", 2.0)], policy=FAIR)
    asked.see(*(free(f"{queue}-{n}", queue=queue, job=queue) for queue in ("one", "two") for n in range(6)))
    passed = [name for name in asked.pods if asked.ask(name) == "a"]
    assert sorted(passed) == ["one-0", "one-1", "two-0", "two-1", "two-2", "two-3"]


def test_a_short_jobs_pods_go_before_a_long_ones():
    asked = Asked(node("a", 100), policy=Policy(srtf=1.0))
    asked.see(free("long", duration=1000.0), free("short", duration=1.0, created=5.0))
    assert asked.ask("long") == OTHERS_FIRST
    assert asked.ask("short") == "a"


def test_a_higher_priority_goes_first():
    asked = Asked(node("a", 100))
    asked.see(free("low"), free("high", priority=10))
    assert asked.ask("low") == OTHERS_FIRST
    assert asked.ask("high") == "a"


def test_where_the_chosen_node_was_not_asked_about_any_that_fits_will_do():
    # The plan fills the emptier node first: b, which is not in the sample.
    asked = Asked(node("a", 200), node("b", 200))
    asked.see(free("there", node="a"), free("p"))
    assert asked.ask("p", nodes=["a"]) is None


def test_the_answer_is_the_same_when_it_is_asked_again():
    asked = Asked(node("a", 100))
    asked.see(free("p"), free("q"))
    first = [asked.ask("p"), asked.ask("q")]
    asked.ledger.forget("uid-p")
    assert [asked.ask("p"), asked.ask("q")] == first


def test_a_pod_that_others_nominated_or_that_has_no_place_in_the_order_is_judged_as_if_there_were_none():
    # Beside what is nominated there is room for one; `high` goes first, and `own` is not kept waiting for it.
    asked = Asked(node("a", 200))
    asked.see(free("high", priority=10), free("nominated", nominated="a"), free("own", owner_kind="DaemonSet"))
    assert asked.ask("own") is None
    asked.ledger.forget("uid-own")
    assert asked.ask("nominated") is None


def test_an_opportunistic_pod_whose_nomination_was_cleared_has_had_its_turn():
    asked = Asked(node("a", 100))
    asked.see(free("runs"), free("demoted", opportunistic=True, promised="a"))
    asked.ask("runs")
    asked.bind("runs", "a")
    assert asked.ask("demoted") is None  # whether it was promised that node is judged by who asks


def refused_in_its_turn(*nodes, **more):
    """Return a cluster in which `odd` was released, and refused where it was nominated."""
    asked = Asked(*nodes, **more)
    asked.see(pod("odd"))
    asked.change("odd", nominated="a", promised="a")
    asked.change("odd", gates=())
    asked.change("odd", unschedulable=True, nominated=None)
    return asked


def test_a_pod_that_was_refused_in_its_turn_may_start_wherever_there_is_room_by_then():
    # Of two nodes with room for one pod each, only b has what `odd` needs. Two of higher priority have the turns.
    asked = refused_in_its_turn(node("a", 100), node("b", 100))
    asked.see(*(free(f"p{n}", priority=10) for n in range(2)), free("new"))
    assert asked.ask("new", nodes=["b"]) == OTHERS_FIRST
    assert asked.ask("odd", nodes=["b"]) is None


def test_a_pod_that_was_refused_in_its_turn_gets_no_room_that_is_kept_for_others():
    # `big` needs all of a, and is due: what ends there is kept for it. b is as large, and has room for nobody else.
    policy = Policy(starved_after=10.0, srtf=0.0)
    asked = refused_in_its_turn(node("a", 200), node("b", 100), policy=policy)
    asked.see(free("runs", node="a", started=0.0, duration=500.0), free("big", 200, queue="r", created=1.0))
    assert asked.ask("odd", nodes=["a"]) == OTHERS_FIRST
    assert asked.ask("odd", nodes=["a", "b"]) == ["b"]


def test_a_pod_that_was_refused_in_its_turn_has_another_once_it_has_rested():
    asked = refused_in_its_turn(node("a", 100))
    assert asked.planner.plan(asked.planner.waiting(), ()).by_class == {}
    asked.now += 5.0
    assert len(asked.planner.plan(asked.planner.waiting(), ()).by_class) == 1


def test_what_is_on_its_way_has_no_second_turn():
    # 300 - 100 for `p`, which is not bound yet: counted once, it leaves the 200 that `r` asks for.
    asked = Asked(node("a", 300))
    asked.see(free("p", priority=10), free("r", cpu=200))
    assert asked.ask("p") == "a"
    asked.now += 1.0
    assert asked.ask("r") == "a"


def test_a_pod_waits_no_longer_once_those_before_it_are_gone():
    asked = Asked(node("a", 100))
    asked.see(free("low"), free("high", priority=10))
    assert asked.ask("low") == OTHERS_FIRST
    asked.remove("high")
    assert asked.ask("low") == "a"


def test_no_is_never_said_by_a_plan_that_does_not_know_all_news():
    asked = Asked(node("a", 100), plan_seconds=50.0)
    asked.see(free("low"), free("high", priority=10))
    assert asked.ask("low") == OTHERS_FIRST
    assert asked.ask("low") == OTHERS_FIRST
    assert asked.plans == 1
    asked.remove("high")
    assert asked.ask("low") == "a"
    assert asked.plans == 2


def test_a_pod_that_kube_scheduler_knows_before_us_has_its_place():
    asked = Asked(node("a", 100))
    asked.see(free("high", priority=10), free("higher", priority=20))
    asked.pods["low"] = free("low")
    assert asked.ask("low") == OTHERS_FIRST
    assert asked.backlog.pod("uid-low") is not None


def test_a_pod_that_only_kube_scheduler_still_knew_is_forgotten():
    asked = Asked(node("a", 100))
    asked.pods["gone"] = free("gone", priority=10)
    asked.see(free("low"))
    asked.ask("gone")
    asked.ledger.forget("uid-gone")
    asked.now += 6.0
    assert asked.ask("low") == "a"
    assert asked.backlog.pod("uid-gone") is None


def test_a_turn_that_nobody_comes_for_is_given_to_others():
    # kube-scheduler refused `never` itself and does not ask about it. The time between two questions counts for one
    # second at most, and a turn of refused pods lasts two.
    asked = Asked(node("a", 100))
    asked.see(free("never", priority=10, unschedulable=True), free("other"))
    answers = []
    for _ in range(4):
        answers.append(asked.ask("other"))
        asked.now += 60.0
    assert answers == [OTHERS_FIRST, OTHERS_FIRST, "a", "a"]


def test_who_comes_after_all_has_its_turn_again():
    asked = Asked(node("a", 100))
    asked.see(free("late", priority=10, unschedulable=True), free("other"))
    for _ in range(3):
        asked.ask("other")
        asked.now += 1.0
    asked.ledger.forget("uid-other")
    assert asked.ask("late") is None  # anywhere: the last plan left nobody else


def test_who_was_left_out_of_a_plan_is_not_refused_by_it():
    # Nothing has changed since the plan by which `other` waits for `third`; that plan left `late` out.
    asked = Asked(node("a", 100))
    asked.see(free("late", priority=10, unschedulable=True), free("other"), free("third", priority=5))
    for _ in range(3):
        assert asked.ask("other") == OTHERS_FIRST
        asked.now += 1.0
    asked.now -= 1.0
    assert asked.ask("late") == "a"


def test_a_pod_that_was_never_tried_keeps_its_turn_while_kube_scheduler_works_its_way_to_it():
    asked = Asked(node("a", 100))
    asked.see(free("new", priority=10), free("other"))
    for _ in range(15):
        assert asked.ask("other") == OTHERS_FIRST
        asked.now += 1.0


def test_a_pod_that_passes_and_is_refused_by_others_does_not_keep_the_rest_waiting():
    asked = Asked(node("a", 100))
    asked.see(free("odd", priority=10), free("other"))
    answers = []
    for _ in range(5):
        assert asked.ask("odd") in ("a", None)
        asked.change("odd", unschedulable=True)
        asked.ledger.forget("uid-odd")
        answers.append(asked.ask("other"))
        asked.ledger.forget("uid-other")
        asked.now += 1.0
    assert answers[0] == OTHERS_FIRST
    assert answers[-1] == "a"


def test_a_gang_passes_whole_or_not_at_all():
    asked = Asked(node("a", 200), node("b", 100))
    members = [free(f"m{n}", group="g", job="g", least=3) for n in range(3)]
    asked.see(*members[:2])
    assert asked.ask("m0") == GANG_WAITS
    asked.see(members[2])
    assert {asked.ask(f"m{n}") for n in range(3)} == {"a", "b"}


def test_gangs_of_which_pods_are_missing_are_refused_without_a_plan():
    # As many as a tenant likes; a plan for each question would keep kube-scheduler, and so everybody, waiting.
    asked = Asked(node("a", 300))
    asked.see(free("first"))
    asked.ask("first")
    before, asked.beside = asked.plans, False
    for n in range(10):
        asked.see(free(f"m{n}", group=f"g{n}", job=f"g{n}", least=2))
        assert asked.ask(f"m{n}") == GANG_WAITS
    assert asked.plans == before


def test_a_gang_of_which_pods_have_ended_or_run_misses_none():
    asked = Asked(node("a", 300))
    asked.see(*(free(f"m{n}", group="g", job="g", least=3) for n in range(3)))
    for n in range(2):
        assert asked.ask(f"m{n}") == "a"
        asked.bind(f"m{n}", "a")
    asked.change("m0", finished=True, started=100.0)
    assert asked.ask("m2") == "a"


def test_a_gang_that_does_not_fit_leaves_the_room_to_others():
    asked = Asked(node("a", 200))
    asked.see(*(free(f"m{n}", group="g", job="g", least=3) for n in range(3)), free("p"))
    assert asked.ask("m0") == GANG_WAITS
    assert asked.ask("p") == "a"


def test_pods_that_our_gate_holds_take_part_in_the_same_plan():
    # Two places and two queues: one each, so of the two without a gate one passes.
    asked = Asked(node("a", 200), policy=FAIR)
    asked.see(*(pod(f"held-{n}", queue="h", job="h") for n in range(2)))
    asked.see(*(free(f"free-{n}", queue="f", job="f") for n in range(2)))
    assert asked.ask("free-0") == "a"
    assert asked.ask("free-1") == OTHERS_FIRST


def test_no_room_is_kept_for_held_pods_like_one_that_was_released_and_refused():
    # Places for two, which `held` pods go first for. One like them is refused, for its ports say: none is released.
    asked = Asked(node("a", 200))
    asked.see(*(pod(f"held-{n}", job="h", priority=10, created=float(n)) for n in range(3)), free("other"))
    assert asked.ask("other") == OTHERS_FIRST
    asked.change("held-0", gates=(), nominated="a", promised="a")
    asked.change("held-0", unschedulable=True)
    asked.now += 0.1
    assert asked.ask("other") == "a"
    # It got its node in the end, and the next goes.
    asked.see(free("another"))
    asked.change("held-0", nominated=None, promised=None, unschedulable=False, node="a", finished=True)
    asked.bind("other", "a")
    asked.now += 0.1
    assert asked.ask("another") == OTHERS_FIRST


def test_those_without_a_gate_that_are_like_a_refused_pod_have_their_turns():
    asked = Asked(node("a", 200))
    asked.see(pod("held", priority=10), *(free(f"p{n}", job="j", inputs=(("a", 8.0),)) for n in range(2)))
    asked.change("held", gates=(), nominated="a", promised="a")
    asked.change("held", unschedulable=True)
    asked.see(pod("q", job="j", inputs=(("a", 8.0),)))
    assert [asked.ask(f"p{n}") for n in range(2)] == ["a", "no room"]


def test_room_is_kept_for_held_pods_while_somebody_releases_them():
    # Places for one; `held` pods outrank `other` and are released one by one. Nobody does so for 20 s: `other` goes.
    asked = Asked(node("a", 100))
    asked.see(*(pod(f"held-{n}", job="h", priority=10) for n in range(2)), free("other"))
    for _ in range(15):
        assert asked.ask("other") == OTHERS_FIRST
        asked.now += 1.0
    asked.change("held-0", gates=(), node="a")
    asked.change("held-0", finished=True)
    for _ in range(15):
        assert asked.ask("other") == OTHERS_FIRST
        asked.now += 1.0
    asked.now += 6.0
    answers = []
    for _ in range(8):
        answers.append(asked.ask("other"))
        asked.ledger.forget("uid-other")
        asked.now += 1.0
    assert answers[-1] == "a"


def test_pods_with_gates_of_others_neither_wait_nor_hold_anything():
    asked = Asked(node("a", 100), policy=FAIR)
    asked.see(pod("gated", priority=10, gates=("example.com/other",)), free("p"))
    assert asked.backlog.at(PodPhase.GATED)
    assert asked.ask("p") == "a"


def slow(asked, *seconds):
    """Let the next plans take so long."""
    ticks, real = iter(seconds), asked.builder.build

    def take_time(*args):
        asked.now += next(ticks, 0.0)
        return real(*args)

    asked.builder.build = take_time


def passing(asked, count):
    """Ask about so many pods at once, none of them in flight and a node has changed; return how many pass."""
    asked.now += 10.0
    asked.apply(NodeGone("b"))
    for n in range(count):
        asked.ledger.forget(f"uid-p{n}")
    return sum(asked.ask(f"p{n}") == "a" for n in range(count))


def test_plans_that_take_too_long_end_sooner_and_go_further_again_when_they_are_fast():
    # 1,000 pods at first; 600 ms is too long: 500, 250, and 125, of which 140 pods show 125. There is hardly room.
    asked = Asked(node("a", 14_500, 1e12))
    asked.see(*(free(f"p{n}", job="j") for n in range(140)))
    slow(asked, 0.6, 0.6, 0.6, 0.6)
    assert passing(asked, 140) == 140
    assert [passing(asked, 140) for _ in range(3)] == [140, 140, 125]
    assert passing(asked, 140) == 140


@pytest.mark.parametrize("flying", [True, False])
def test_an_old_no_is_given_only_where_plans_take_long_and_a_binding_will_wake_all(flying):
    # A plan that took 1 s answers for 5 s, so that planning takes a fifth of the time at most.
    asked = Asked(node("a", 200), plan_seconds=0.05)
    asked.see(free("low"), free("high", priority=10, job="h"), free("higher", priority=20, cpu=100))
    slow(asked, 1.0)
    assert asked.ask("higher") == "a"
    if not flying:
        asked.bind("higher", "a")
    asked.remove("high")
    assert asked.ask("low") == (OTHERS_FIRST if flying else "a")


def test_what_is_kept_of_the_preferences_of_pods_that_are_gone_is_bounded(monkeypatch):
    monkeypatch.setattr("extender.control.plan_input.preferred_nodes._MOST_KEPT", 3)
    asked = Asked(node("a", 500), node("b", 500))
    for number in range(10):  # each prefers nodes of its own; the one before is gone
        asked.see(free(f"p{number}", prefers=((10, (Requirement("rack", "In", (f"r{number}",)),)),)))
        assert asked.ask(f"p{number}") != OTHERS_FIRST
        assert len(asked.turns._preferred_nodes._preferred) <= 3
        asked.remove(f"p{number}")

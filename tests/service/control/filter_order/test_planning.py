"""Plans are made beside the questions: who passes without one, who waits for one, and what if it is late or fails."""

import threading
import time

import pytest

from extender.cluster.events import NodeGone, NodeSeen
from extender.control.filter_order.order import GANG_WAITS, OTHERS_FIRST
from extender.control.filter_order.planning import LONGEST_WAIT_SECONDS
from extender.planner import Policy
from tests.service.control.filter_order.asked import Asked, free
from tests.service.control.scene import node, pod

FAIR = Policy(fairness=0.9, srtf=0.0)


def unplanned(*nodes, **options):
    """Return a cluster whose thread has not had its turn yet."""
    asked = Asked(*nodes, **options)
    asked.beside = False
    return asked


def no_plan_in_time(asked):
    """Let questions wait in vain for a plan."""

    def pass_time(seconds):
        asked.now += seconds

    asked.planning._wait = pass_time


def test_a_burst_for_which_there_is_room_passes_without_a_plan():
    asked = unplanned(node("a", 100_000, 1e12), node("b", 100_000, 1e12))
    asked.see(*(free(f"p{n}", job="j") for n in range(1000)))
    assert all(asked.ask(f"p{n}") is None for n in range(1000))
    assert asked.plans == 0


def test_the_thread_makes_no_plan_either_while_all_that_waits_needs_half_of_the_room_at_most():
    asked = Asked(node("a", 1000))
    asked.see(*(free(f"p{n}", job="j") for n in range(5)))
    assert all(asked.ask(f"p{n}") is None for n in range(2))
    assert asked.plans == 0
    asked.see(free("more"))
    asked.now += 0.1
    asked.planning.step()
    assert asked.plans == 1


def test_what_waits_without_a_plan_counts_before_another_passes():
    # Five wait for half of the room: of the 500 that they leave spare a new one may have half, unplanned.
    asked = Asked(node("a", 1000))
    asked.see(*(free(f"p{n}", job="j") for n in range(5)))
    asked.planning.step()
    asked.beside = False
    asked.see(free("small", 250))
    assert asked.ask("small") is None
    asked.see(free("next", 50))
    assert asked.ask("next") == "a"
    assert asked.plans == 1


def test_nothing_is_planned_while_nobody_waits():
    asked = Asked(node("a", 200))
    asked.planning.step()
    assert asked.plans == 0
    asked.see(free("p", 150))
    asked.now += 0.1
    asked.planning.step()
    assert asked.plans == 1
    assert asked.ask("p") == "a"
    for change in (NodeSeen(node("b", 200)), NodeGone("b")):
        asked.now += 1.0
        asked.apply(change)
        asked.planning.step()
    asked.bind("p", "a")
    asked.now += 1.0
    asked.planning.step()
    assert asked.plans == 1
    assert not asked.planning.last.waiting


def test_a_plan_that_leaves_nobody_holds_until_somebody_else_waits():
    asked = Asked(node("a", 1100))
    asked.see(*(free(f"p{n}", job="j") for n in range(10)))
    for n in range(5):
        assert asked.ask(f"p{n}") == "a"
        asked.bind(f"p{n}", "a")
        asked.now += 0.1
    assert asked.plans == 1
    asked.see(free("new"))
    assert asked.ask("p5") == "a"
    assert asked.plans == 2


def test_a_pod_that_the_last_plan_does_not_know_passes_where_that_left_nobody():
    asked = Asked(node("a", 300))
    asked.see(free("known", 200))
    assert asked.ask("known") == "a"
    asked.see(free("new", 50))
    asked.beside = False
    assert asked.ask("new") is None
    assert asked.plans == 1


def test_where_more_has_come_than_half_of_what_the_last_plan_left_spare_a_new_plan_decides():
    # 500 - 300 for `known`: 200 are spare. Of three new ones with 60 each that it does not know, only one fits in half.
    asked = Asked(node("a", 500))
    asked.see(free("known", 300))
    assert asked.ask("known") == "a"
    asked.beside = False
    asked.see(free("one", 60))
    assert asked.ask("one") is None
    asked.see(free("two", 60), free("three", 60))
    assert asked.plans == 1
    assert asked.ask("two") == "a"
    assert asked.plans == 2


def test_a_plan_by_which_all_find_room_gives_no_turns_once_there_are_more_than_find_room():
    # 12 places: the plan knows 12 pods of `one` alone. Then as many of `two` come, before anybody is asked about.
    asked = Asked(node("a", 1200), policy=FAIR)
    asked.see(*(free(f"one-{n}", queue="one", job="one") for n in range(12)))
    asked.planning.step()
    asked.see(*(free(f"two-{n}", queue="two", job="two") for n in range(12)))
    asked.beside = False
    names = [f"{queue}-{n}" for queue in ("one", "two") for n in range(12)]
    passed = [name for name in names if asked.ask(name) == "a"]
    assert sum(name.startswith("one") for name in passed) == 6
    assert len(passed) == 12
    assert asked.plans <= 3


@pytest.mark.parametrize(("size", "plans"), [(300, 2), (5000, 1)])
def test_a_pod_that_fits_nowhere_at_all_keeps_nobody_waiting(size, plans):
    # 300 on a node of 400 may fit one day, 5,000 never: only by the former is somebody left behind.
    asked = Asked(node("a", 400), node("b", 200))
    asked.see(free("there", 200, node="a"), free("large", size, priority=10), free("known"))
    assert asked.ask("known") in ("a", "b")
    asked.beside = False
    asked.see(free("new", 50))
    assert asked.ask("new") in (("a", "b") if size == 300 else (None,))
    assert asked.plans == plans


@pytest.mark.parametrize(("owner", "keeps"), [("Job", True), ("DaemonSet", False)])
def test_nor_does_one_that_fits_only_without_the_pods_of_daemon_sets(owner, keeps):
    asked = Asked(node("a"))
    asked.see(pod("there", 100, gates=(), node="a", owner_kind=owner), free("large", 950))
    asked.ask("large")
    assert asked.planning.last.leaves_hopeful is keeps


def test_two_bursts_of_which_half_fits_share_but_for_what_passed_before_the_first_plan():
    # 20 places, two queues with the same weight: 10 each. 6 of `one` passed before anything was planned.
    asked = unplanned(node("a", 2000), policy=FAIR)
    names = [f"{queue}-{n}" for queue in ("one", "two") for n in range(20)]
    asked.see(*(free(name, queue=name[:3], job=name[:3]) for name in names))
    passed = [name for name in names[:6] if asked.ask(name) is None]
    assert len(passed) == 6
    asked.beside = True
    for name in names[6:]:
        asked.now += 0.1
        if asked.ask(name) == "a":
            passed.append(name)
            asked.bind(name, "a")
    assert sum(name.startswith("one") for name in passed) == 10
    assert len(passed) == 20


def test_a_pod_that_passes_while_a_plan_is_made_takes_a_slot_of_that_plan():
    # 2 places, the second is for `two`; while that is planned `one-0` passes by the plan before.
    asked = Asked(node("a", 200), policy=FAIR)
    asked.see(*(free(f"{queue}-{n}", queue=queue, job=queue) for queue in ("one", "two") for n in range(3)))
    asked.planning.step()
    real = asked.builder.build

    def pass_meanwhile(*args):
        plan_input = real(*args)
        asked.builder.build = real
        asked.beside = False
        assert asked.ask("one-0") == "a"
        return plan_input

    asked.builder.build = pass_meanwhile
    asked.see(free("three", queue="two", job="two"))
    asked.now += 1.0
    asked.planning.step()
    assert asked.plans == 2
    answers = [asked.ask(name) for name in ("one-1", "one-2", "two-0")]
    assert answers == [OTHERS_FIRST, OTHERS_FIRST, "a"]


@pytest.mark.parametrize(("cores", "refused"), [(4_000, 0), (120, 20)])
def test_a_plan_that_is_cut_short_refuses_nobody_where_there_surely_is_room_for_the_rest(cores, refused):
    # 50 of 140 pods are planned. The other 90 need 90 cores; 3,950 are left, or only 70. One that was refused asks for
    # the plan, and fits nowhere.
    asked = Asked(node("a", cores * 1000, 1e12))
    asked.planner._most = 50
    asked.see(free("large", 1e9, job="large", unschedulable=True))
    asked.see(*(free(f"p{n}", 1000, job="j") for n in range(140)))
    answers = [asked.ask(f"p{n}") for n in range(140)]
    assert sum(answer in (OTHERS_FIRST, "no room") for answer in answers) == refused
    assert asked.plans <= 2


def test_a_pod_of_a_gang_waits_for_a_plan_that_knows_its_gang():
    asked = unplanned(node("a", 300))
    asked.see(*(free(f"m{n}", group="g", job="g", least=3) for n in range(2)))
    assert asked.ask("m0") == GANG_WAITS
    asked.see(free("m2", group="g", job="g", least=3))
    assert [asked.ask(f"m{n}") for n in range(3)] == ["a"] * 3


def test_a_pod_of_a_class_that_the_last_plan_does_not_know_waits_for_the_next():
    asked = Asked(node("a", 200))
    asked.see(*(free(f"low-{n}", job="low") for n in range(3)))
    assert asked.ask("low-0") == "a"
    asked.beside = False
    asked.see(free("high", priority=10, job="high"))
    assert asked.ask("high") == "a"
    assert asked.plans == 2


def test_who_was_refused_by_a_plan_is_refused_again_at_once_while_a_binding_will_wake_it():
    asked = Asked(node("a", 200))
    asked.see(*(free(f"low-{n}", job="low", created=2.0) for n in range(3)), free("high", priority=10, job="high"))
    assert asked.ask("high") == "a"
    asked.see(free("higher", priority=20, job="higher"))
    assert asked.ask("low-0") == "a"
    asked.ledger.forget("uid-low-0")
    asked.beside = False
    plans = asked.plans
    assert [asked.ask(f"low-{n}") for n in (1, 2)] == [OTHERS_FIRST] * 2
    assert asked.plans == plans


def test_a_question_does_not_wait_long_for_a_plan_that_is_late():
    asked = Asked(node("a", 100))
    asked.see(free("low"), free("high", priority=10))
    assert asked.ask("low") == OTHERS_FIRST
    asked.remove("high")
    asked.beside = False
    no_plan_in_time(asked)
    begun = asked.now
    assert asked.ask("low") == OTHERS_FIRST
    assert asked.now - begun == pytest.approx(LONGEST_WAIT_SECONDS)


def test_while_plans_fail_the_last_one_answers_and_the_next_try_comes_later():
    asked = Asked(node("a", 200))
    asked.see(free("low"), free("high", priority=10), free("higher", priority=20))
    assert asked.ask("high") == "a"
    real = asked.builder.build
    asked.builder.build = lambda *_: 1 / 0
    asked.remove("higher")
    asked.now += 0.1
    assert asked.ask("low") == OTHERS_FIRST
    assert asked.failures == 1
    asked.builder.build = real
    asked.now += 1.0
    assert asked.ask("low") == "a"
    assert asked.failures == 1


def test_where_no_plan_was_ever_made_because_it_fails_pods_pass():
    asked = Asked(node("a", 200))
    asked.builder.build = lambda *_: 1 / 0
    asked.see(free("p", 150))
    assert asked.ask("p") is None
    assert asked.failures == 1


def test_slots_outlive_a_change_of_the_nodes():
    # b comes before the plan's node c by name, so rows move.
    asked = Asked(node("c", 200))
    asked.see(free("there", 100, node="c"), *(free(f"p{n}", job="j") for n in range(3)))
    asked.planning.step()
    asked.beside = False
    asked.apply(NodeSeen(node("b", 50)))
    assert asked.ask("p0") == "c"
    assert asked.plans == 1


def test_room_that_the_plan_keeps_for_somebody_is_closed_to_others_in_a_sample_without_their_own_node():
    # `large` is due and fits nowhere before 150 end on a. `small` has b or c by the plan.
    asked = Asked(node("a", 200), node("b", 100), node("c", 100), policy=Policy(srtf=0.0, starved_after=10.0))
    asked.see(free("ends", 150, node="a", started=90.0, duration=20.0), free("large", 200, job="large"))
    asked.see(free("small", 50, job="small", created=99.0))
    asked.planning.step()
    assert asked.planning.last.reserved.tolist() == [True, False, False]
    asked.beside = False
    assert asked.ask("small", nodes=["a"]) == OTHERS_FIRST
    own = asked.ask("small")
    (other,) = {"b", "c"} - {own}
    assert asked.ask("small", nodes=["a", other]) == [other]


def test_held_pods_that_the_plan_leaves_waiting_are_not_overtaken():
    asked = Asked(node("a", 200))
    asked.see(*(pod(f"held-{n}", 150, job="h", priority=10) for n in range(2)))
    asked.planning.step()
    asked.see(free("new", 50))
    asked.beside = False
    assert asked.ask("new") == "a"  # by a plan that knows it: 50 are left beside the first of the held pods
    assert asked.plans == 2


class TestThread:
    """The thread itself, with real time."""

    def thread(self, asked):
        planning = asked.planning
        planning._wait = planning._published.wait
        planning._clock = time.monotonic
        planning._next_at = 0.0
        thread = threading.Thread(target=planning.run)
        thread.start()
        return thread

    def test_a_question_is_answered_by_the_thread_s_next_plan_and_stop_ends_the_thread(self):
        asked = unplanned(node("a", 100))
        asked.see(free("low"), free("high", priority=10))
        thread = self.thread(asked)
        task_class = asked.backlog.find("uid-low")[0]
        slots = asked.planning.next(task_class)
        assert {left.template.name for left in slots.leaves} == {"low"}
        asked.planning.stop()
        thread.join(5)
        assert not thread.is_alive()

    def test_stop_ends_the_wait_of_a_question(self):
        asked = unplanned(node("a", 100))
        asked.see(free("low"))
        asked.planning._wait = asked.planning._published.wait
        answers = []
        question = threading.Thread(
            target=lambda: answers.append(asked.planning.next(asked.backlog.find("uid-low")[0]))
        )
        question.start()
        asked.planning.stop()
        question.join(5)
        assert answers == [None]

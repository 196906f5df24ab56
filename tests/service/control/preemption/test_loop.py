"""Preemption: who goes when a node's use passes its limits, and when nobody does.

One node of 1,000 of CPU; opportunistic pods of 300 that use what the test says.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.cluster.node_terms import OpportunisticTerms
from extender.cluster.stays_off import StaysOff
from extender.cluster.usage import Sample, Usage
from extender.control.backlog.task_classes import name_of
from extender.control.eviction_requests import EvictionRequests
from extender.control.preemption.eviction_history import EvictionHistory
from extender.control.preemption.loop import PreemptionLimits, Preemptor
from extender.control.preemption.overload import Limits, Pressure
from extender.control.preemption.rates import Rates
from tests.service.control.preemption.evictions import Evictions
from tests.service.control.scene import Scene, node, pod


class PreemptionScene(Evictions, Scene):
    """`use` says what CPU each pod uses, `others` what regular ones do, `whole` what nodes do that say so as a whole.

    Samples come every second unless `frozen`, and are means over `window` s. `waiting` says by node for which part of
    the time regular pods wait for CPU. The loops' clock is `ahead` of that of the samples.
    """

    def __init__(self, *nodes, **terms):
        self.terms = PreemptionLimits(**{"limits": Limits.of(), "rates": Rates(600, 600), **terms})
        self.window, self.ahead = 0, 0.0
        self.use, self.others, self.whole, self.waiting, self.problems = {}, {}, {}, {}, {}
        self.frozen_at = None
        self.usage_hook = self.flight_hook = lambda: None
        super().__init__(*nodes)

    def start(self):
        super().start()
        requests, self.history = EvictionRequests(self.cluster, self), EvictionHistory()
        self.preemptor = Preemptor(
            self.cluster,
            self.usage,
            requests,
            self,
            self.terms,
            StaysOff(),
            history=self.history,
            starved=self.starved_pods(),
            clock=lambda: self.now,
        )

    def starved_pods(self):
        return None

    def flight_time(self):
        self.flight_hook()
        return super().flight_time()

    def usage(self):
        self.usage_hook()
        at = self.now if self.frozen_at is None else self.frozen_at
        there = {it.name: it for it in self.pods.values() if it.node}
        pods = {
            it.uid: Sample({"cpu": float(self.use.get(name, 0))}, at - self.window, at) for name, it in there.items()
        }
        pods_on = {
            name: Sample(
                {"cpu": sum(self.use.get(it.name, 0) for it in there.values() if it.node == name) + others},
                at - self.window,
                at,
            )
            for name, others in self.others.items()
        }
        whole = {name: Sample({"cpu": float(cpu)}, at, at) for name, cpu in self.whole.items()}
        return Usage(whole, pods_on, pods, self.problems, self.waiting)

    def run(self, seconds):
        for _ in range(seconds):
            self.now += 1
            self.preemptor.step(self.now + self.ahead)
        return self.evicted


def runs(name, *, on="n1", started=0.0):
    it = pod(name, 300, gates=(), node=on, started=started)
    return replace(it, opportunistic=True)


CLASS = name_of(runs("a"))
"""The name of the class of all of them."""


def scene(*pods, regular=800, **terms):
    found = PreemptionScene(node("n1"), **terms)
    found.others = {"n1": regular}
    found.see(*(pods or (runs("a"), runs("b"))))
    found.use = {"a": 100, "b": 150}
    return found


def test_nobody_goes_before_the_third_sample_and_then_the_fewest_that_suffice():
    full = scene()
    assert full.run(2) == []
    assert full.run(1) == ["a"]
    assert full.counted == [("a", "cpu", False)]
    assert full.events == [
        ("a", "Preempted", "it ran on what others had reserved; these use it now: too little cpu on node n1")
    ]


def test_once_the_node_is_under_its_limits_the_others_stay():
    assert scene().run(60) == ["a"]


@pytest.mark.parametrize(("aside", "evicted"), [(0, ["b"]), (60, [])])
def test_what_the_system_has_for_itself_is_not_counted_against_opportunistic_pods(aside, evicted):
    # The node as a whole uses 1,050 of 1,000 offered: more than 990, unless 60 of it are the system's.
    with_aside = replace(node("n1"), terms=OpportunisticTerms(system={"cpu": float(aside)}))
    found = PreemptionScene(with_aside)
    found.see(runs("a"), runs("b"))
    found.use, found.whole = {"a": 50, "b": 150}, {"n1": 1050}
    assert found.run(5) == evicted


def test_while_a_victim_is_on_its_way_out_nobody_else_is_asked():
    full = scene()
    full.slow = True
    assert full.run(30) == ["a"]


@pytest.mark.parametrize("when", ["use is read", "the cluster is read"])
def test_nobody_else_goes_where_a_victim_goes_in_the_middle_of_a_step(when):
    full = scene()
    full.slow = True
    full.run(4)

    def go():
        if "a" in full.pods:
            full.remove("a")
            full.others["n1"] = 900  # the samples still hold what it used

    name = "usage_hook" if when == "use is read" else "flight_hook"
    setattr(full, name, go)
    full.run(1)
    assert "a" not in full.pods
    assert full.evicted == ["a"]


def test_after_a_victim_has_gone_only_new_samples_count():
    full = scene(regular=1200)
    assert full.run(3) == ["a", "b"]
    full.see(runs("c"))
    full.use["c"] = 50
    assert full.run(2) == ["a", "b"]
    assert full.run(3) == ["a", "b", "c"]


@pytest.mark.parametrize("ahead", [0.0, 7200.0, -7200.0])
def test_samples_that_hold_a_victim_do_not_count_and_later_ones_do_though_the_clock_of_the_loops_is_off(ahead):
    full = scene()
    full.window, full.ahead = 30, ahead
    assert full.run(3) == ["a"]
    full.others["n1"] = 900  # the samples of half a minute hold what it used
    assert full.run(29) == ["a"]
    assert full.run(4) == ["a", "b"]


def test_who_is_protected_by_a_budget_stays_and_another_goes():
    full = scene()
    full.protected = {"a"}
    assert full.run(8) == ["b"]


def test_nobody_goes_where_samples_are_frozen_or_not_to_be_trusted():
    frozen = scene()
    frozen.frozen_at = frozen.now
    assert frozen.run(300) == []
    doubtful = scene()
    doubtful.problems = {"n1": "two series"}
    assert doubtful.run(300) == []


@pytest.mark.parametrize(("ended", "evicted"), [(0, ["a"]), (300, [])])
def test_nobody_goes_for_memory_that_only_pods_had_that_have_ended(ended, evicted):
    # The sum over pods is 980 of 1,000, and some of that is of pods that have ended; the node itself uses 680.
    full = scene(runs("a"))

    def usage():
        whole, pods_on, one = ({"cpu": 100.0, "memory": memory} for memory in (680.0, 980.0, 50.0))
        samples = [
            {who: Sample(used, full.now, full.now)} for who, used in (("n1", whole), ("n1", pods_on), ("uid-a", one))
        ]
        return Usage(*samples, gone={"n1": {"memory": float(ended)}})

    full.preemptor._usage = usage
    assert full.run(3) == evicted


def test_nobody_goes_while_we_do_not_lead():
    full = scene()
    full.leading = False
    assert full.run(10) == []


def test_a_dry_run_counts_and_asks_nobody():
    full = scene(dry_run=True)
    assert full.run(4) == []
    assert full.counted == [("a", "cpu", True)]


@pytest.mark.parametrize(("rates", "evicted"), [(Rates(1, 600), 1), (Rates(600, 1), 1), (Rates(60, 60), 4)])
def test_no_more_go_than_the_rates_allow(rates, evicted):
    pods = [runs(f"p{place}") for place in range(5)]
    full = scene(*pods, regular=0, rates=rates)
    used = {it.name: 300 for it in pods}
    for _ in range(4):  # whoever goes is replaced by more use of the others
        full.use = used | {"p4": 2000}
        full.run(5)
    assert len(full.evicted) <= evicted


def short_of_three(**terms):
    """Return a node that is 300 over its limit by five pods of 100, with samples over a minute."""
    full = scene(*(runs(f"p{place}") for place in range(5)), regular=790, **terms)
    full.use = {f"p{place}": 100 for place in range(5)}
    full.window = 60
    return full


def test_all_that_a_node_needs_to_go_go_together_and_nobody_else():
    full = short_of_three(rates=Rates())
    assert full.run(2) == []
    assert len(full.run(1)) == 3
    assert len(full.run(60)) == 3


def test_a_dry_run_counts_all_of_them_once_each():
    full = short_of_three(rates=Rates(), dry_run=True)
    full.run(50)
    assert len({name for name, *_ in full.counted}) == len(full.counted) == 3


def test_of_more_than_a_minute_allows_the_others_go_by_later_samples():
    full = short_of_three(rates=Rates(per_node=2))
    assert len(full.run(3)) == 2
    assert len(full.run(57)) == 2
    assert len(full.run(10)) == 3


def test_an_evicted_class_stays_off_the_node():
    full = scene()
    full.run(4)
    assert full.preemptor.stays_off.barred([CLASS], ["n1", "n2"], full.now).tolist() == [[True, False]]
    assert full.history.evicted([CLASS]).tolist() == [1.0]


def test_a_class_whose_eviction_was_refused_may_come_to_the_node():
    full = scene()
    full.protected = {"a", "b"}
    assert full.run(40) == []
    assert not full.preemptor.stays_off.barred([CLASS], ["n1"], full.now).any()
    assert full.history.evicted([CLASS]).tolist() == [0.0]


AT_MOST, FLOOR = 0.1, 0.8
BY_PRESSURE = Limits.of(pressure=Pressure(AT_MOST, FLOOR))


def test_by_pressure_a_full_cpu_evicts_nobody_until_regular_pods_wait_for_it():
    full = scene(limits=BY_PRESSURE)  # 1,050 of 1,000
    full.waiting = {"n1": 0.02}
    assert full.run(60) == []
    full.waiting = {"n1": 0.3}
    assert full.run(2) == []
    assert full.run(1) == ["a"]  # 100 is a tenth of the node
    assert full.counted == [("a", "cpu", False)]
    assert "too little cpu" in full.events[0][2]


@pytest.mark.parametrize("problem", [{}, {"n1": "two series"}])
def test_by_pressure_nobody_goes_for_cpu_where_it_is_not_known_or_not_to_be_trusted(problem):
    full = scene(limits=BY_PRESSURE)
    full.waiting, full.problems = ({"n1": 0.9} if problem else {}), problem
    assert full.run(60) == []


def test_by_pressure_nobody_goes_below_t_alloc_however_long_a_pod_waits_for_itself():
    full = scene(limits=BY_PRESSURE, regular=540)  # 790 of 1,000
    full.waiting = {"n1": 1.0}
    assert full.run(60) == []


def test_by_pressure_a_dry_run_counts_at_each_round_and_asks_nobody():
    full = scene(limits=BY_PRESSURE, dry_run=True)
    full.waiting = {"n1": 0.3}
    assert full.run(3) == []
    assert full.counted == [("a", "cpu", True)]


@given(
    uses=st.lists(st.integers(0, 300), min_size=1, max_size=8),
    regular=st.integers(0, 1000),
    parts=st.lists(st.sampled_from([0.0, 0.1, 0.11, 1.0, None]), min_size=1, max_size=5),
)
def test_by_pressure_rounds_are_apart_small_and_come_to_an_end_whatever_is_measured(uses, regular, parts):
    # parts follow each other for ever; None: it is not known.
    full = scene(*(runs(f"p{place}") for place in range(len(uses))), limits=BY_PRESSURE, regular=regular)
    full.use = {f"p{place}": use for place, use in enumerate(uses)}
    rounds = []
    for second in range(60):
        before, used = len(full.evicted), regular + sum(full.use[name] for name in full.pods)
        part = parts[second % len(parts)]
        full.waiting = {} if part is None else {"n1": part}
        full.run(1)
        if gone := full.evicted[before:]:
            rounds.append(second)
            assert part is not None
            assert part > AT_MOST
            # No more than is needed: without any of them it would not be a tenth of the node, nor the floor.
            step = min(AT_MOST * 1000, used - FLOOR * 1000)
            freed = [full.use[name] for name in gone]
            assert step > 0
            assert min(freed) > 0
            assert sum(freed) - min(freed) < step
    assert len(set(full.evicted)) == len(full.evicted)
    assert all(later - earlier >= 3 for earlier, later in zip([-1, *rounds], rounds, strict=False))
    if min(part or 0.0 for part in parts) > AT_MOST:  # they never cease to wait: down to the floor, then no further
        assert regular + sum(full.use[name] for name in full.pods) <= FLOOR * 1000 or not any(
            full.use[name] for name in full.pods
        )


def test_a_new_leader_asks_nobody_again_and_nobody_else_while_a_victim_is_on_its_way_out():
    full = scene()
    full.slow = True
    full.run(3)
    full.restart()
    assert full.run(30) == ["a"]
    full.remove("a")
    assert full.run(10) == ["a"]
    assert set(full.pods) == {"b"}


def test_samples_before_another_led_do_not_count_with_those_after():
    it = scene()
    assert it.run(2) == []
    it.leading = False
    it.run(3)
    it.leading = True
    assert it.run(2) == []
    assert len(it.run(1)) == 1

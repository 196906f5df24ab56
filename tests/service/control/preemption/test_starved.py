"""Opportunistic pods that get next to nothing are moved: who, when, and when nobody is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.cluster.resources import CPU_INDEX
from extender.control.preemption.overload import Limits, Pressure
from extender.control.preemption.starved_pods import StarvedPods
from tests.service.control.preemption.test_loop import CLASS, PreemptionScene, runs
from tests.service.control.scene import node

SAMPLES = 12
BY_PRESSURE = Limits.of(pressure=Pressure(0.1, 0.8))


class StarvedScene(PreemptionScene):
    """By pressure a full CPU evicts nobody here. `usual` is what CPU the class uses, None: that is not known."""

    usual = 200.0

    def starved_pods(self):
        return StarvedPods(self.uses, SAMPLES)

    def uses(self, pods, unknown):
        found = unknown.copy()
        if self.usual is not None:
            found[:, CPU_INDEX] = self.usual
        return found


def scene(*pods, regular=980, names=("n1",), **terms):
    found = StarvedScene(*map(node, names), **{"limits": BY_PRESSURE, **terms})
    found.others = dict.fromkeys(names, regular)
    found.see(*(pods or (runs("a"), runs("b"))))
    found.use, found.waiting = {"a": 5, "b": 40}, dict.fromkeys(names, 0.0)
    found.now = 100.0
    return found


def test_who_gets_next_to_nothing_of_a_full_cpu_is_moved_after_many_samples_and_nobody_else():
    full = scene()
    assert full.run(SAMPLES - 1) == []
    assert full.run(1) == ["a"]
    assert full.run(5 * SAMPLES) == ["a"]
    (event,) = full.events
    assert event == ("a", "Preempted", "it got next to no cpu on node n1 for a while, and may get more elsewhere")
    assert full.counted == [("a", "cpu", False)]


@pytest.mark.parametrize(
    "change",
    [
        {"others": {"n1": 800}},  # the CPU is not full: it wants no more
        {"usual": None},
        {"usual": 40.0},  # so its class uses everywhere
        {"problems": {"n1": "measured twice"}},
        {"frozen_at": 100.0},
    ],
    ids=["room", "unknown", "usual", "problem", "frozen"],
)
def test_nobody_is_moved_where_that_is_not_known_or_not_so(change):
    full = scene()
    for name, value in change.items():
        setattr(full, name, value)
    assert full.run(5 * SAMPLES) == []


def test_a_sample_in_which_it_got_more_starts_anew():
    full = scene()
    full.run(SAMPLES - 1)
    full.use["a"] = 60
    full.run(1)
    full.use["a"] = 5
    assert full.run(SAMPLES - 1) == []
    assert full.run(1) == ["a"]


def test_of_a_node_one_goes_at_a_time_who_loses_least_work_first():
    full = scene(runs("old", started=0.0), runs("new", started=50.0))
    full.use = {"old": 1, "new": 1}
    assert full.run(SAMPLES) == ["new"]
    assert full.run(1) == ["new", "old"]


def test_the_class_stays_off_that_node_for_a_while():
    full = scene()
    full.run(SAMPLES + 1)
    assert full.preemptor.stays_off.nodes_of(CLASS, full.now) == ["n1"]


def test_whom_a_budget_protects_stays_and_a_dry_run_tells_of_one_at_a_time():
    full = scene()
    full.protected = {"a"}
    assert full.run(3 * SAMPLES) == []
    dry = scene(dry_run=True)
    assert dry.run(2 * SAMPLES) == []
    assert dry.counted == [("a", "cpu", True)] * 2


def test_who_is_too_young_for_the_sample_to_hold_it_whole_stays():
    full = scene(runs("a", started=95.0))
    full.use = {"a": 1}
    assert full.run(24 + SAMPLES - 1) == []
    assert full.run(1) == ["a"]


@given(st.lists(st.tuples(st.floats(0, 300), st.sampled_from([800.0, 980.0])), min_size=1, max_size=40))
def test_it_goes_once_at_most_and_only_after_so_many_deprived_samples_in_a_row(course):
    full = scene(runs("a"))
    streak = 0
    for got, regular in course:
        full.use, full.others = {"a": got}, {"n1": regular}
        starved = got < 20 and got + regular >= 950
        streak = streak + 1 if starved else 0
        full.run(1)
        if full.evicted:
            break
        assert streak < SAMPLES
    assert full.evicted == (["a"] if streak >= SAMPLES else [])


def test_who_was_not_measured_is_not_moved():
    full = scene(runs("a"))
    measured = full.preemptor._usage
    full.preemptor._usage = lambda: replace(measured(), pods={})
    assert full.run(3 * SAMPLES) == []

"""The benchmark of the order in small: that its figures are those of what ran, worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from extender.planner import Policy
from lab.bench.order import aged, deep, kept
from lab.bench.order import rows as order
from lab.bench.order.live import LiveCase, Look, shares_of


def ran(*tasks):
    """Return an outcome of one-task jobs: (queue, started, ended) each."""
    queues, started, ended = zip(*tasks, strict=True)
    jobs = [SimpleNamespace(queue=queue) for queue in queues]
    return SimpleNamespace(jobs=jobs, tasks=SimpleNamespace(started=np.array(started), ended=np.array(ended)))


def test_the_fair_shares_of_an_aged_backlog_know_minimums():
    assert aged.fair_shares({"c": 0.35}) == pytest.approx({"a": 0.4875, "b": 0.1625, "c": 0.35})


def test_shares_are_those_of_what_ran():
    # 40 slots for 900 s; a fair 24, b and c 8. a has 28, b 4: 10 points each.
    tasks = [("a", 0.0, 900.0)] * 28 + [("b", 0.0, 900.0)] * 4 + [("c", 0.0, 900.0)] * 8
    still_waiting = [(queue, 900.0, 901.0) for queue in "abc"]
    assert aged.shares_of(ran(*tasks, *still_waiting), {}).error == pytest.approx(10.0)


def test_a_queue_below_its_minimum_beside_which_others_start_is_counted_in_seconds():
    # c is sure of half (20 slots) and has one. At 100 s a starts one, until 130 s nothing more happens.
    tasks = [("c", 0.0, 900.0), ("a", 100.0, 900.0), ("a", 0.0, 130.0), ("a", 0.0, 900.0)]
    still_waiting = [(queue, 900.0, 901.0) for queue in "abc"]
    found = aged.shares_of(ran(*tasks, *still_waiting), {"c": 0.5}).min_broken
    assert found == pytest.approx(30.0 + 100.0)  # from 0 s on as well: a starts two then


def test_deep_backlogs_are_the_same_for_a_seed_and_differ_between_seeds():
    def sizes(seed):
        return [len(job.stages) for job in deep.deep("layered", seed, 10).jobs]

    assert sizes(1) == sizes(1) != sizes(2)


def test_what_is_idle_though_usable_is_small_and_somebody_of_each_kind_starts():
    found = kept.measure(0, 10.0, Policy())
    assert found.idle <= 5.0
    small, large, gangs, _ = found.started
    assert min(small, large, gangs) > 0


@pytest.mark.slow
def test_the_quick_form_has_all_rows_within_what_must_be():
    size = order.OrderSize(seeds=1, jobs=12, aged_minutes=15.0, aged_seeds=1, kept_minutes=4.0)
    ticks = []
    rows = {row.id: row.ours for row in order.measure(size, lambda: ticks.append(1)).rows}
    assert len(ticks) == size.runs
    assert rows["deep.vs_drf"] > 0
    assert rows["aged.share_error"] <= 3
    assert rows["aged.min_broken"] == 0
    assert rows["kept.idle"] <= 5


def test_live_shares_count_after_the_first_half_minute():
    # Of 4 slots research has 3, then 2; fair 75 %: 62.5 % in the mean, 12.5 points.
    case = LiveCase(nodes=1, slots_per_node=4)
    looks = [
        Look(0.0, {"research": 4, "beta": 0}, {}),
        Look(31.0, {"research": 3, "beta": 1}, {}),
        Look(32.0, {"research": 2, "beta": 2}, {}),
    ]
    found = shares_of(case, looks)
    assert (found.error, found.in_use) == (pytest.approx(12.5), pytest.approx(100.0))

"""Use as a policy sees it: means over a window, sampled now and then, and late."""

import numpy as np
import pytest

from extender.errors import DovetailError
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.engine.use.sampling import Sampler, Sampling
from lab.sim.schedulers.first_fit import FirstFit
from lab.sim.workloads.workload import Job, Machines, Stage, Workload
from tests.lab.sim.engine.use.test_tasks import CPU, MEMORY, machines, task
from tests.service.costs import lines_of


def passes(sampler, tasks, begin, end):
    """Let time pass as the world does."""
    sampler.between(begin, end, tasks)
    ended = tasks.end_due(end)
    tasks.share(end)
    return ended


def test_a_sample_is_the_mean_over_its_window_and_known_late():
    # From second 10 on 500 are used: the window from 5 to 15 holds half of that. It is known at second 17.
    tasks, sampler = machines(), Sampler(Sampling(scrape=5, window=10, delay=2), 1, 6, 0.0)
    passes(sampler, tasks, 0.0, 10.0)
    tasks.start(task(cpu=500, memory=8), 10.0)
    tasks.share(10.0)
    passes(sampler, tasks, 10.0, 15.5)
    assert sampler.newest(16.9).at == 10
    assert sampler.next_known(16.9) == 17
    seen = sampler.newest(17.0)
    assert (seen.since, seen.at) == (5, 15)
    assert seen.nodes[0, CPU] == pytest.approx(250)
    assert seen.nodes[0, MEMORY] == 8  # a gauge


def test_the_same_sample_is_the_same_object_until_there_is_another():
    tasks, sampler = machines(), Sampler(Sampling(scrape=5, delay=0), 1, 6, 0.0)
    passes(sampler, tasks, 0.0, 9.0)
    assert sampler.newest(6.0) is sampler.newest(9.0)


def test_what_tasks_used_that_have_ended_is_in_the_window_and_can_be_told():
    # A task uses 500 from 0 to 10: of the window from 0 to 15 the node's mean is 5000 / 15. The scrape at 10
    # was the last that saw the task.
    tasks, sampler = machines(), Sampler(Sampling(scrape=5, window=15, delay=0), 1, 6, 0.0)
    tasks.start(task(3, cpu=500, memory=8), 0.0)
    tasks.share(0.0)
    assert passes(sampler, tasks, 0.0, 10.0).task.tolist() == [3]
    passes(sampler, tasks, 10.0, 15.1)
    seen = sampler.newest(15.1)
    assert seen.nodes[0, :2].tolist() == pytest.approx([5000 / 15, 0])
    use, known = seen.of(np.array([3, 4]))
    assert known.tolist() == [True, False]
    assert use[0, :2].tolist() == pytest.approx([5000 / 15, 0])
    assert seen.of_others(np.array([4]))[0, CPU] == pytest.approx(5000 / 15)
    assert seen.of_others(np.array([3])).sum() == 0


def test_scrapes_that_no_later_sample_needs_are_forgotten_though_nobody_asks():
    # The window from 85 to 95, which is known from 97 on, may still be asked for at 100: 85, 90, 95, 100, and one more.
    tasks, sampler = machines(), Sampler(Sampling(scrape=5, window=10, delay=2), 1, 6, 0.0)
    passes(sampler, tasks, 0.0, 100.0)
    assert len(sampler._scrapes) <= 5
    assert (sampler.newest(100.0).since, sampler.newest(100.0).at) == (85, 95)


def test_a_window_shorter_than_a_scrape_is_refused():
    with pytest.raises(DovetailError, match="window"):
        Sampling(scrape=15, window=5)


def test_pressure_is_the_part_of_the_window_for_which_regular_tasks_waited():
    # From second 10 on two tasks want 2000 of 1000: they wait for half of the time, 2.5 s of the window from 5 to 15.
    tasks, sampler = machines(2), Sampler(Sampling(scrape=5, window=10, delay=0), 2, 6, 0.0)
    passes(sampler, tasks, 0.0, 10.0)
    for number in range(2):
        tasks.start(task(number, cpu=1000), 10.0)
    tasks.share(10.0)
    passes(sampler, tasks, 10.0, 15.5)
    assert sampler.newest(15.5).pressure.tolist() == pytest.approx([0.25, 0.0])


def test_nobody_samples_for_nobody_however_long_tasks_take():
    some = Machines("one", np.array([[4000.0, 64, 100, 100, 100, 100]]))

    def lines(seconds):
        stage = Stage("s", np.array([1000.0, 8, 0, 0, 0, 0]), 0.0, seconds, np.array([seconds]))
        settings = SimulationSettings(estimate=True)
        return lines_of(
            lambda: run(Workload("w", [Job("j", 0.0, [stage])]), some, FirstFit(), seed=1, settings=settings)
        )

    assert lines(1e5) < 1.5 * lines(1e2)

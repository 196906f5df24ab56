"""Many jobs on one cluster: what is drawn, who is compared, and how fairness is measured."""

from types import SimpleNamespace

import numpy as np
import pytest

from lab.experiments.graphene.jobs import CONTENDERS, LOOSE, MACHINES, OURS, drawn, in_two_queues, machines
from lab.experiments.graphene.many import AT_START, JobsRun, Many, ManyRun, jain, perform
from lab.sim.schedulers.baselines import in_job_order
from tests.service.planner.scenes import tasks
from tests.service.planner.test_dag_progress import ordered


def test_jobs_arrive_in_the_time_of_their_work_by_the_load():
    slow, fast = drawn(3, 30, 1.0), drawn(3, 30, 2.0)
    arrives = np.array([[job.arrives_at for job in workload.jobs] for workload in (slow, fast)])
    assert arrives[1] == pytest.approx(arrives[0] / 2)
    # The work of the scarcest resource keeps all machines busy about that long: 30 draws of gaps, so within a third.
    capacity = machines().capacity[0]
    work = sum(
        stage.tasks * stage.duration * (stage.demand / capacity + np.eye(6)[2] * stage.reading / capacity[2])
        for job in slow.jobs
        for stage in job.stages
    )
    assert arrives[0][-1] == pytest.approx(work.max() / MACHINES, rel=0.33)
    assert {job.queue for job in in_two_queues(slow, 3).jobs} == {"a", "b"}


def test_a_baseline_goes_by_the_order_that_its_job_asks_in():
    waiting = tasks((0, 1, (1,)), (0, 1, (1,)), (1, 1, (1,)))
    rows = np.arange(3)
    assert in_job_order(waiting, rows).tolist() == [0, 1, 2]
    assert in_job_order(ordered(waiting, (0.5,), (1.0,), None), rows).tolist() == [1, 0, 2]


def test_jains_index_counts_windows_in_which_both_queues_have_jobs():
    # Points each second. Job b goes at second 4, so with windows of 2 s the first two count: shares 1:3 and 2:2.
    # (1 + 3)^2 / (2 x 10) = 0.8, and 1.
    series = SimpleNamespace(
        at=np.arange(6.0), queues=np.array([[0.1, 0.3], [0.1, 0.3], [0.2, 0.2], [0.2, 0.2], [0.4, 0], [0.4, 0]])
    )
    jobs = [
        SimpleNamespace(queue="a", arrived=0.0, ended=6.0),
        SimpleNamespace(queue="b", arrived=0.0, ended=4.0),
    ]
    outcome = SimpleNamespace(series=series, jobs=jobs, queue_names=["a", "b"])
    assert jain(outcome, 2.0) == pytest.approx(0.9)
    assert np.isnan(jain(outcome, 6.0))
    assert np.isnan(jain(SimpleNamespace(series=series, jobs=jobs, queue_names=["a"]), 2.0))


def test_gains_are_those_of_each_job_and_of_the_makespan():
    part = Many(2, [10])
    outcomes = {run: JobsRun(np.array([100.0, 200.0]), 400.0, (0.5, 0.6, 0.7), 200.0) for run in part.runs()}
    for run in outcomes:
        if run.contender in (OURS, LOOSE):
            outcomes[run] = JobsRun(np.array([50.0, 180.0]), 300.0, (0.7, 0.8, 0.9), 200.0)
    rows = {figure.id: figure.ours.mean for figure in part.section(outcomes).figures}
    # Jobs gain 50 and 10 %: 30 at the median.
    assert rows["graphene.jobs_vs_tez.p50"] == pytest.approx(30)
    assert rows["graphene.makespan_vs_tez"] == pytest.approx(25)
    makespan = next(figure for figure in part.section(outcomes).figures if figure.id == "graphene.makespan_vs_tez")
    assert makespan.attainable.mean == pytest.approx(50)  # none takes less than 200 of Tez' 400 s
    assert rows["graphene.two_queues"] == 0
    assert [rows[f"graphene.jain.{window}s"] for window in (10, 60, 240)] == [0.7, 0.8, 0.9]


@pytest.mark.parametrize("contender", CONTENDERS)
def test_every_contender_brings_its_jobs_to_their_end(contender):
    run = perform(ManyRun(11, 2, contender, AT_START), lambda _done, _total: None)
    assert len(run.seconds) == 2
    assert run.makespan == pytest.approx(run.seconds.max())
    assert np.isnan(run.jain).all()  # one queue

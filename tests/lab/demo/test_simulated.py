"""The demo's workload in the simulator: the same demands, and figures that say that they are simulated."""

import io

import numpy as np
import pytest
from rich.console import Console

from extender.cluster.resources import DIMENSIONS
from lab.demo.simulated import as_simulated, show, simulate
from lab.demo.workload import QUICK, STANDARD, DemoNode, DemoPod, DemoWorkload, generate

READING = DIMENSIONS.index("disk-read")


def test_jobs_keep_their_demand_their_queue_and_their_seconds():
    workload = generate(QUICK, seed=1)
    simulated = as_simulated(workload)

    assert simulated.tasks == len(workload.tasks)
    assert simulated.weights == {"research": 3, "analytics": 2, "reports": 1}
    first = simulated.jobs[0]
    (stage,) = first.stages
    demand = stage.demand + stage.reading * (np.arange(len(DIMENSIONS)) == READING)
    assert demand.tolist() == workload.demand[0].tolist()
    assert stage.durations.tolist() == workload.work[: stage.tasks].tolist()
    assert (first.queue, first.name) == ("research", "job-000")


def test_pods_that_share_a_network_take_longer_by_the_stock_scheduler_and_wait_with_dovetail():
    # Two machines of 125 MB/s; four pods of 100 MB/s and 10 s. The stock scheduler runs all at once, two on each
    # machine, at 125/200 of their speed: 16 s. Dovetail runs one on each: 20 s in all, the first two after 10 s.
    demand = {**dict.fromkeys(DIMENSIONS, 0.0), "cpu": 1000.0, "memory": 1e9, "disk-read": 1e6, "network-in": 100e6}
    tasks = tuple(DemoPod(f"pod-{number}", f"job-{number}", "network", demand, 10.0) for number in range(4))
    workload = DemoWorkload((DemoNode("a", STANDARD), DemoNode("b", STANDARD)), tasks)

    stock, dovetail = simulate(workload, seed=1)

    assert (stock.name, dovetail.name) == ("stock scheduler", "Dovetail")
    assert (stock.makespan, stock.job_mean) == (pytest.approx(16), pytest.approx(16))
    assert (dovetail.makespan, dovetail.job_mean) == (pytest.approx(20), pytest.approx(15))


def test_what_is_shown_says_that_it_is_simulated():
    console = Console(width=100, file=io.StringIO(), highlight=False)
    show(console, simulate(generate(QUICK, seed=1), seed=1))
    text = console.file.getvalue()
    assert text.startswith("SIMULATED")
    assert "makespan" in text

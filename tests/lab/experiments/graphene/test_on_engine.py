"""The rules of executors on the simulator's engine: waves, moves and stages go as in the experiment's own loop."""

import numpy as np
import pytest

from lab.experiments.graphene.rules import CONTENDERS
from lab.sim.dag.executors import Executors
from lab.sim.dag.tpch import Arrival, Query
from tests.lab.experiments.graphene.on_engine import job_seconds

EXECUTORS = 3


def drawn(random):
    """Return a query of one to four stages, each of which has parents among those before it."""
    stages = int(random.integers(1, 5))
    parents = [tuple(np.flatnonzero(random.random(row) < 0.5).tolist()) for row in range(stages)]
    tasks = random.integers(1, 8, stages).tolist()
    return Query("q-2g", tuple(tasks), tuple(parents), random.uniform(0.5, 6.0, (stages, 3, EXECUTORS)))


def test_two_executors_and_two_queries_by_hand():
    # One task of 5 s (fresh, alone) each on an executor of its own, after a move of 2 s; the second comes at 1.
    one = Query("q-2g", (1,), ((),), np.full((1, 3, 2), 5.0))
    arrivals = [Arrival(one, 0.0), Arrival(one, 1.0)]
    assert job_seconds(arrivals, 2, CONTENDERS["fifo"].rule, stays=True).tolist() == [7, 7]


@pytest.mark.parametrize("name", CONTENDERS)
def test_both_engines_agree_to_the_microsecond(name):
    contender = CONTENDERS[name]
    for seed in range(4):
        random = np.random.default_rng(seed)
        arrivals = [Arrival(drawn(random), float(at)) for at in np.cumsum(random.exponential(6.0, 12))]
        own = Executors(arrivals, EXECUTORS).run(contender.rule, stays=contender.stays)
        simulated = job_seconds(arrivals, EXECUTORS, contender.rule, stays=contender.stays)
        assert simulated == pytest.approx(own, abs=1e-6)

"""The table of a workload's stages."""

from lab.sim.workloads.stages import table_of
from lab.sim.workloads.workload import Job, Workload
from tests.lab.sim.workloads.test_bounds import TWO, stage
from tests.service.costs import lines_of


def test_its_cost_grows_with_the_jobs_not_with_their_square():
    def lines(count):
        jobs = [Job(f"j{row}", 0.0, [stage([1.0])], queue=f"q{row}") for row in range(count)]
        return lines_of(lambda: table_of(Workload("many", jobs), TWO))

    assert lines(400) < 5 * lines(100)

"""The names of stages in a run: schedulers keep notes under them, and errors show them."""

from collections import Counter
from collections.abc import Sequence

from lab.sim.workloads.workload import Job


def distinct(names: Sequence[str], longer: Sequence[str]) -> list[str]:
    """Return each name [N], or the longer one where the same name stands twice."""
    count = Counter(names)
    return [name if count[name] == 1 else long for name, long in zip(names, longer, strict=True)]


def stage_names(jobs: Sequence[Job]) -> list[str]:
    """Return job/stage for each stage of these jobs [S], with both in quotes where two would have one name."""
    pairs = [(job.name, stage.name) for job in jobs for stage in job.stages]
    return distinct([f"{job}/{stage}" for job, stage in pairs], [f"{job!r}/{stage!r}" for job, stage in pairs])

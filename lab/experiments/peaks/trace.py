"""SURF's jobs of one week, with what they used of their CPU in every five minutes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from extender.arrays import Counts, Floats
from extender.errors import TraceError
from lab.sim.workloads.columns import lines, number, positive, read, text, whole

JOBS = Path("opendc_usage/surf_week_jobs.csv")
USAGE = Path("opendc_usage/surf_week_usage_300s.csv")
STEP_SECONDS = 300.0

_JOB_COLUMNS: Mapping[str, Callable[[str], object]] = {
    "id": text,
    "submit_s": number,
    "duration_s": positive,
    "cpu_count": positive,
}
_USAGE_COLUMNS: Mapping[str, Callable[[str], object]] = {"id": text, "k": whole, "frac": number}


@dataclass(frozen=True, slots=True)
class SurfJobs:
    """Jobs in the order of their arrival. Time is in steps of five minutes.

    `submitted` [J]: the step in which a job came. `length` [J]: how many steps it takes. `cores` [J]: its request.
    `use` [J, L]: the cores that it uses in each step after its start, 0 after its end.
    """

    submitted: Counts
    length: Counts
    cores: Floats
    use: Floats


@lru_cache(maxsize=1)
def surf_jobs(folder: Path) -> SurfJobs:
    """Return the jobs that take at least one step. Raises TraceError, also for a job with a step without use.

    All runs of a process have the same ones, which are read once: not to be changed.
    """
    fractions = _fractions(folder / USAGE)
    rows = []
    for where, (job, submitted, seconds, cores) in lines(folder / JOBS, _JOB_COLUMNS):
        if seconds < STEP_SECONDS:
            continue
        parts = fractions.get(job, {})
        if sorted(parts) != list(range(len(parts))) or not parts:
            raise TraceError(f"{where}: the use of job {job} is not known for every step")
        rows.append((int(submitted // STEP_SECONDS), job, cores, [parts[step] for step in range(len(parts))]))
    if not rows:
        raise TraceError(f"{folder / JOBS} has no job of {STEP_SECONDS:g} s or more")
    rows.sort(key=lambda row: row[:2])
    use = np.zeros((len(rows), max(len(row[3]) for row in rows)))
    for place, (_, _, cores, amounts) in enumerate(rows):
        use[place, : len(amounts)] = np.array(amounts) * cores
    return SurfJobs(
        submitted=np.array([row[0] for row in rows]),
        length=np.array([len(row[3]) for row in rows]),
        cores=np.array([row[2] for row in rows]),
        use=use,
    )


def _fractions(path: Path) -> dict[str, dict[int, float]]:
    """Return what each job uses of its request, by its steps."""
    fractions: dict[str, dict[int, float]] = {}
    for job, step, fraction in read(path, _USAGE_COLUMNS):
        fractions.setdefault(job, {})[step] = fraction
    return fractions

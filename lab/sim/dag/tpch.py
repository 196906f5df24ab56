"""TPC-H queries as Spark ran them: stages, and seconds of tasks by the number of executors (the trace `tpch_dags`)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from extender.errors import SpecError, TraceError
from extender.graph import Dag, Machines, Parent, Stage

FORM = "tpch:"
_FILE = Path("tpch_dags") / "tpch_dags.jsonl"
_SHORTEST_SECONDS = 0.001


def is_query(workload: str) -> bool:
    """Whether a workload names a query, as in tpch:q5-100g."""
    return workload.startswith(FORM)


def query(workload: str, traces: Path, executors: int) -> tuple[Dag, Machines]:
    """Return a query on so many executors, each of which runs a task at a time.

    The first tasks of a stage, one for each executor, take what first tasks took in the mean, the others what the rest
    took. Raises SpecError for an unknown query or a missing trace, TraceError for a malformed line.
    """
    path, name = traces / _FILE, workload.removeprefix(FORM)
    if not path.is_file():
        raise SpecError(f"{workload}: there is no {path}; say with --traces where the traces are")
    names = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{path}, line {number}"
        try:
            told = json.loads(line)
            names.append(str(told["job"]))
            if names[-1] == name:
                return Dag([_stage(told_stage, executors) for told_stage in told["stages"]]), Machines(
                    executors, np.ones(1)
                )
        except (ValueError, KeyError, TypeError) as error:
            raise TraceError(f"{where}: not a query ({error})") from None
    raise SpecError(f"{workload}: there is no such query; accepted: {names[0]}, {names[1]}, ... {names[-1]}")


def _stage(told: Mapping[str, Any], executors: int) -> Stage:
    tasks = int(told["tasks"])
    seconds = np.full(tasks, _mean(told["seconds"], ("rest_wave", "first_wave", "fresh_durations"), executors))
    first = min(tasks, executors)
    seconds[:first] = _mean(told["seconds"], ("first_wave", "fresh_durations", "rest_wave"), executors)
    parents = tuple(Parent(f"stage-{parent}") for parent in told["parents"])
    return Stage(f"stage-{told['stage']}", seconds, np.ones(1), parents)


def _mean(seconds: Mapping[str, Mapping[str, list[float]]], waves: tuple[str, ...], executors: int) -> float:
    """Return the mean of the first of these waves that was seen, at the nearest number of executors."""
    for wave in waves:
        if seen := seconds[wave]:
            nearest = min(seen, key=lambda number: (abs(int(number) - executors), int(number)))
            return max(float(seen[nearest][0]), _SHORTEST_SECONDS)
    raise ValueError(f"no seconds in {', '.join(waves)}")

"""TPC-H queries as Spark ran them: stages, and seconds of tasks by the number of executors (the trace `tpch_dags`)."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from extender.arrays import Floats
from extender.errors import TraceError
from extender.graph import Dag, Machines, Parent, Stage
from lab.errors import SpecError
from lab.sim.workloads.waves import FIRST, FRESH, REST, Curve, Waves, curve_of, seconds_alone

FORM = "tpch:"
_FOLDER = Path("tpch_dags")
_FILE, _SEQUENCES = _FOLDER / "tpch_dags.jsonl", _FOLDER / "sequences.csv"
_WAVES = ("fresh_durations", "first_wave", "rest_wave")
_INSTEAD = ((FRESH, FIRST, REST), (FIRST, FRESH, REST), (REST, FIRST, FRESH))
"""Which wave's seconds count for each wave: the first of these that was seen."""
_SHORTEST_SECONDS = 0.001
_WARM_UP_SECONDS = 1.0
"""What a fresh executor takes more where only others were seen; chosen."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query: its stages' `tasks` [S], their `parents` by row, and what a task takes.

    `seconds` [S, 3, E]: by wave, on 1 to E executors that the query has at that time.
    """

    name: str
    tasks: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    seconds: Floats

    def dag(self, executors: int) -> Dag:
        """Return it on so many executors: the first tasks of a stage, one for each, take what first tasks take."""
        stages = []
        for row, tasks in enumerate(self.tasks):
            seconds = seconds_alone(self.waves(row), tasks, executors)
            parents = tuple(Parent(f"stage-{parent}") for parent in self.parents[row])
            stages.append(Stage(f"stage-{row}", seconds, np.ones(1), parents))
        return Dag(stages)

    def waves(self, row: int) -> Waves:
        """Return what tasks of a stage take."""
        counts = np.arange(1.0, self.seconds.shape[2] + 1)
        fresh, first, rest = (Curve(counts, self.seconds[row, wave]) for wave in (FRESH, FIRST, REST))
        return fresh, first, rest


@dataclass(frozen=True, slots=True)
class Arrival:
    """A query, and when it arrives."""

    query: Query
    seconds: float


def is_query(workload: str) -> bool:
    """Whether a workload names a query, as in tpch:q5-100g."""
    return workload.startswith(FORM)


def query(workload: str, traces: Path, executors: int) -> tuple[Dag, Machines]:
    """Return a query on so many executors, each of which runs a task at a time.

    The first tasks of a stage, one for each executor, take what first tasks took in the mean, the others what the rest
    took. Raises SpecError for an unknown query or a missing trace, TraceError for a malformed line.
    """
    name = workload.removeprefix(FORM)
    names = []
    for candidate in _queries(traces, executors):
        if candidate.name == name:
            return candidate.dag(executors), Machines(executors, np.ones(1))
        names.append(candidate.name)
    raise SpecError(f"{workload}: there is no such query; accepted: {names[0]}, {names[1]}, ... {names[-1]}")


def queries(traces: Path, executors: int) -> dict[str, Query]:
    """Return all queries by name, on at most so many executors. Raises SpecError, TraceError."""
    return {each.name: each for each in _queries(traces, executors)}


def sequence(traces: Path, number: int, executors: int) -> list[Arrival]:
    """Return one of the published sequences of queries. Raises SpecError where it is missing, TraceError."""
    path, known = traces / _SEQUENCES, queries(traces, executors)
    if not path.is_file():
        raise SpecError(f"tpch: there is no {path}; say with --traces where the traces are")
    arrivals = []
    with path.open(encoding="utf-8", newline="") as lines:
        for line, row in enumerate(csv.DictReader(lines), 2):
            try:
                if int(row["seed"]) == number:
                    arrivals.append(Arrival(known[row["query"]], float(row["arrives_s"])))
            except (KeyError, TypeError, ValueError) as error:
                raise TraceError(f"{path}, line {line}: not an arrival ({error})") from None
    if not arrivals:
        raise SpecError(f"tpch: {path} has no sequence {number}")
    return arrivals


def _queries(traces: Path, executors: int) -> Iterator[Query]:
    path = traces / _FILE
    if not path.is_file():
        raise SpecError(f"tpch: there is no {path}; say with --traces where the traces are")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            yield _query(json.loads(line), executors)
        except (ValueError, KeyError, TypeError) as error:
            raise TraceError(f"{path}, line {number}: not a query ({error})") from None


def _query(document: Mapping[str, Any], executors: int) -> Query:
    row_of = {stage["stage"]: row for row, stage in enumerate(document["stages"])}
    return Query(
        str(document["job"]),
        tuple(int(stage["tasks"]) for stage in document["stages"]),
        tuple(tuple(row_of[parent] for parent in stage["parents"]) for stage in document["stages"]),
        np.array([_seconds(stage["seconds"], executors) for stage in document["stages"]]),
    )


def _seconds(by_wave: Mapping[str, Mapping[str, Sequence[float]]], executors: int) -> Floats:
    """Return the mean seconds of a task by wave, on 1 to so many executors [3, E]; between counts seen they are even.

    Raises ValueError where no wave was seen.
    """
    counts = np.arange(1.0, executors + 1)
    seconds = np.empty((3, executors))
    for wave, instead in enumerate(_INSTEAD):
        seen = next((number for number in instead if by_wave[_WAVES[number]]), None)
        if seen is None:
            raise ValueError(f"no seconds in {', '.join(_WAVES)}")
        curve = curve_of({int(count): float(mean) for count, (mean, _) in by_wave[_WAVES[seen]].items()})
        seconds[wave] = curve.on(counts)
        if wave == FRESH != seen:
            seconds[wave] += _WARM_UP_SECONDS
    return np.maximum(seconds, _SHORTEST_SECONDS)

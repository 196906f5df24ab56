"""The result of a fit as a file: the values, and how they came about, so that nobody has to trust or guess.

The files lie beside this module, one for each workload. The values in them are the defaults of the parameters (a test
compares the two); a fit that is run again writes a new file, and changing the defaults to it is a commit of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from lab.experiments.fit.search import Trial
from lab.experiments.fit.targets import MeasuredCells, Target, with_factors


@dataclass(frozen=True, slots=True)
class FitRun:
    """How a fit was run: the command, the seeds of the workload, how many trials, and what the search drew by."""

    command: str
    seeds: Sequence[int]
    trials: int
    search_seed: int


def document(target: Target, run: FitRun, first: Trial, best: Trial) -> dict[str, Any]:
    """Return what the file holds."""
    return {
        "about": "Fitted to what the Tetris paper publishes about its baselines; the planner was not run.",
        "command": run.command,
        "workload": target.size.workload,
        "machines": target.size.machines,
        "part_of_the_tasks_of_a_job": target.size.part,
        "policies": list(target.policies),
        "seeds": list(run.seeds),
        "trials": run.trials,
        "search_seed": run.search_seed,
        "best_trial": best.number,
        "began_with": _values(target, first),
        "values": _values(target, best),
        "fit_at_the_beginning": _rounded(first.measured.fit(target)),
        "fit": _rounded(best.measured.fit(target)),
        "makespan_seconds": dict(zip(target.policies, map(round, best.measured.makespans), strict=True)),
        "cells": _cells(target, best.measured),
    }


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a file, one value a line."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def _values(target: Target, trial: Trial) -> dict[str, Any]:
    group = getattr(with_factors(target, trial.factors), target.group)
    return {knob.name: getattr(group, knob.name) for knob in target.knobs}


def _cells(target: Target, measured: MeasuredCells) -> list[dict[str, Any]]:
    return [
        {"cell": cell.name, "paper": cell.paper, "ours": _rounded(ours), "miss": _rounded(miss)}
        for cell, ours, miss in zip(target.cells, measured.cells, measured.misses(target), strict=True)
    ]


def _rounded(value: float) -> float:
    return round(value, 3)

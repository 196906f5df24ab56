"""Runs of one workload side by side: a line for each figure, a column for each policy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from extender.arrays import Floats
from extender.cluster.resources import DIMENSIONS, MEMORY
from lab.sim.engine.measures import while_starting
from lab.sim.engine.outcome import Outcome
from lab.sim.report.compared import SLOWED_PERCENT, improvement, job_changes, slowed

if TYPE_CHECKING:
    from rich.table import Table


_Show = Callable[[Outcome], str]
"""What a figure's cell says of a run."""

_MOST_QUEUES = 8
"""The table has the job times of so many queues at most; JSON has all."""

_BETWEEN = 3
"""How many places a column of a table takes besides its own."""

_MAIN = {
    "makespan, s": "makespan, s",
    "job time, s: mean": "mean job time, s",
    "  median": "median",
    "mean job time, % better": "% better",
    "slowed jobs, %, by": "slowed jobs, %",
}
"""The figures that are shown of many runs, by the name of their line, and the heading of each."""

NOTES = (
    "Job time: from a job's arrival to the end of its last task. Use: what tasks really use, mean over the time from "
    "the first start to the last; a task counts until the plan that sees its end, and one that only waits for its gang "
    "uses its memory alone. Over-allocated: the part of machines and time in which more is wanted than there is.",
    f"Slowed jobs: those that take over {SLOWED_PERCENT:g} % longer than under the first policy, and by how much in "
    "the mean and at worst. Unfairness: the jobs that got less than an equal share over their life, and how much less "
    "(Tetris, 5.3.2). Median of job changes: half of the jobs gain more than that, in percent of their time.",
    "Longest wait: from a job's arrival to its first start. Task slow-down: how many times as long as at their peaks "
    "tasks take. Fragmentation: of the waiting tasks that would fit if all free room were one machine, the part that "
    "fits into no single machine. Decisions/s: tasks placed in a second of planning.",
    "The planner knows all stages of a job when it arrives. On a cluster it does not know those to come: where jobs "
    "have several, expect less gain in makespan there.",
)


@dataclass(frozen=True, slots=True)
class FigureLine:
    """One figure of every run: its name with the unit, and what is shown for each run."""

    name: str
    cells: Sequence[str]


def lines(runs: Sequence[Outcome]) -> list[FigureLine]:
    """Return all figures of these runs; comparisons are with the first run."""
    first = runs[0]
    of_all = [FigureLine(name, [show(run) for run in runs]) for name, show in _figures(runs)]
    against = [FigureLine(name, ["" if run is first else show(first, run) for run in runs]) for name, show in _COMPARED]
    if not all(math.isnan(run.locality) for run in runs):
        of_all.append(FigureLine("local reads", [_local_reads(run) for run in runs]))
    if any(run.opportunistic is not None for run in runs):
        of_all.append(FigureLine("killed by memory", [_killed(run) for run in runs]))
    if any(run.begun_anew.times for run in runs):
        of_all.append(FigureLine("begun anew: times, s lost", [_begun_anew(run) for run in runs]))
    return of_all + (against if len(runs) > 1 else [])


def _figures(runs: Sequence[Outcome]) -> list[tuple[str, _Show]]:
    """Return the figures of every run; those by resource and by queue are named as in the first.

    Resources that no task demands are left out.
    """
    axis, queues = runs[0].axis, runs[0].queue_names[:_MOST_QUEUES] if len(runs[0].queue_names) > 1 else ()
    demanded = [place for place in range(len(axis)) if any(run.series.demanded[:, place].any() for run in runs)]
    contended = [place for place in demanded if axis[place] in DIMENSIONS and axis[place] != MEMORY]
    return [
        *_TIMES,
        *_under("mean job time: ", [(name, _of_queue(name)) for name in queues]),
        *_TASKS,
        *_under("use: ", [(axis[place], _used(place)) for place in demanded]),
        *_under("over-allocated: ", [(axis[place], _over(place)) for place in contended]),
        *_OTHERS,
    ]


def _under(heading: str, figures: Sequence[tuple[str, _Show]]) -> list[tuple[str, _Show]]:
    """Return figures of one kind, the first with what they are."""
    return [(f"  {name}" if place else f"{heading}{name}", show) for place, (name, show) in enumerate(figures)]


def table(runs: Sequence[Outcome], width: int) -> "Table":
    """Return the lines as a table of at most this width, or, where the runs do not fit, a line for each run."""
    headings, rows = ["", *(run.policy for run in runs)], [(line.name, *line.cells) for line in lines(runs)]
    widths = _widths(headings, rows, width)
    return _table(headings, rows, widths) if widths else _by_run(runs, width)


def _by_run(runs: Sequence[Outcome], width: int) -> "Table":
    """Return a line for each run, with the main figures."""
    shown = [line for line in lines(runs) if line.name in _MAIN]
    headings = ["", *(_MAIN[line.name] for line in shown)]
    rows = [(run.policy, *(_first_part(line.cells[row]) for line in shown)) for row, run in enumerate(runs)]
    result = _table(headings, rows, _widths(headings, rows, width) or [None, *_longest_words(headings, rows)[1:]])
    result.caption = "More runs than fit beside each other: --report FILE and --json have all figures."
    return result


def _widths(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the widths of the columns, in which no word is broken; [] where that does not fit into `width`."""
    names, *columns = zip(*rows, strict=True)
    least = [max(map(len, names)), *_longest_words(headings, rows)[1:]]
    spare = width - sum(least) - _BETWEEN * len(least) - 1
    if spare < 0:
        return []
    for place, column in enumerate(columns, 1):
        more = min(max(0, max(map(len, column)) - least[place]), spare)
        least[place], spare = least[place] + more, spare - more
    return least


def _longest_words(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return how long the longest word of each column is."""
    columns = zip(headings, *rows, strict=True)
    return [max(map(len, " ".join(column).split()), default=0) for column in columns]


def _first_part(cell: str) -> str:
    """Return the first of what a cell lists, as in 25.0, +54, +60; a number such as 1,170 is one."""
    return cell.partition(", ")[0]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int | None] = ()) -> "Table":
    from rich import box
    from rich.table import Table

    text_table = Table(*headings, box=box.SIMPLE_HEAD)
    text_table.columns[0].overflow = "fold"  # a name that is cut off may be another's, too
    for column in text_table.columns[1:]:
        column.justify = "right"
    for column, width in zip(text_table.columns, widths, strict=False):
        column.width = width
    for row in rows:
        text_table.add_row(*row)
    return text_table


def as_json(runs: Sequence[Outcome]) -> dict[str, Any]:
    """Return everything about the runs, and each compared with the first, as JSON takes it."""
    first = runs[0]
    return {
        "runs": [run.to_dict() | _summed_up(run) for run in runs],
        "compared": [_compared(first, run) for run in runs[1:]],
    }


def mean_use(run: Outcome) -> Floats:
    """Return what tasks really use of the cluster [R], mean over the time from the first start to the last."""
    return _while_starting(run, run.series.used)


def mean_running(run: Outcome) -> float:
    """Return how many tasks run, mean over the time from the first start to the last."""
    return float(_while_starting(run, run.series.running.astype(np.float64)))


def slow_down(run: Outcome) -> float:
    """Return how many times as long as at their peaks tasks take, in the mean of all."""
    return run.task_seconds / run.ideal_task_seconds if run.ideal_task_seconds else 1.0


def queue_seconds(run: Outcome) -> dict[str, float]:
    """Return the mean job time of each queue."""
    row_of = {name: row for row, name in enumerate(run.queue_names)}
    queue = np.array([row_of[job.queue] for job in run.jobs])
    ends = np.cumsum(np.bincount(queue, minlength=len(row_of)))[:-1]
    by_queue = np.split(run.job_seconds[np.argsort(queue, kind="stable")], ends)
    return {name: float(seconds.mean()) for name, seconds in zip(run.queue_names, by_queue, strict=True)}


def _summed_up(run: Outcome) -> dict[str, Any]:
    """Return what the table shows and an outcome's own JSON does not have."""
    return {
        "mean_use": dict(zip(run.axis, mean_use(run).tolist(), strict=True)),
        "longest_wait": float(run.job_waits.max(initial=0.0)),
        "mean_job_time_by_queue": queue_seconds(run),
        "begun_anew": asdict(run.begun_anew),
    }


def _while_starting(run: Outcome, values: Floats) -> Floats:
    first = min((job.started for job in run.jobs), default=np.inf)
    inside = while_starting(run.series.at, first, run.tasks.started.max(initial=-np.inf))
    return np.asarray(values[inside].mean(axis=0) if inside.any() else np.zeros(values.shape[1:]))


def _compared(first: Outcome, run: Outcome) -> dict[str, Any]:
    slower = slowed(first.job_seconds, run.job_seconds)
    return {
        "policy": run.policy,
        "with": first.policy,
        "makespan_percent": improvement(first.makespan, run.makespan),
        "mean_job_time_percent": improvement(float(first.job_seconds.mean()), float(run.job_seconds.mean())),
        "median_of_job_changes_percent": float(np.median(job_changes(first.job_seconds, run.job_seconds))),
        "slowed_jobs_percent": slower.percent,
        "slowed_mean_percent": slower.mean,
        "slowed_worst_percent": slower.worst,
    }


def _job_time(statistic: Callable[[Floats], float]) -> _Show:
    return lambda run: f"{statistic(run.job_seconds):,.0f}"


def _percentile(percent: int) -> _Show:
    return _job_time(lambda seconds: float(np.percentile(seconds, percent)))


def _used(place: int) -> _Show:
    return lambda run: f"{mean_use(run)[place]:.0%}"


def _over(place: int) -> _Show:
    return lambda run: f"{run.fullness.over_allocated[place]:.1%}"


def _local_reads(run: Outcome) -> str:
    return "" if math.isnan(run.locality) else f"{run.locality:.0%}"


def _killed(run: Outcome) -> str:
    lost = run.opportunistic
    return "" if lost is None else f"{lost.killed_regular + lost.killed_opportunistic:,}"


def _of_queue(name: str) -> _Show:
    return lambda run: f"{queue_seconds(run)[name]:,.0f}"


def _begun_anew(run: Outcome) -> str:
    return f"{run.begun_anew.times:,}, {run.begun_anew.seconds:,.0f}"


def _unfair(run: Outcome) -> str:
    below = np.array([job.unfairness for job in run.jobs if job.unfairness < 0])
    return f"{len(below) / len(run.jobs):.0%}, {below.mean():.0%}" if len(below) else "0%"


def _slowed(first: Outcome, run: Outcome) -> str:
    slower = slowed(first.job_seconds, run.job_seconds)
    return (
        f"{slower.percent:.1f}"
        if not slower.percent
        else f"{slower.percent:.1f}, +{slower.mean:.0f}, +{slower.worst:.0f}"
    )


_TIMES: Sequence[tuple[str, _Show]] = (
    ("makespan, s", lambda run: f"{run.makespan:,.0f}"),
    ("job time, s: mean", _job_time(lambda seconds: float(seconds.mean()))),
    ("  median", _percentile(50)),
    ("  p90", _percentile(90)),
    ("  p99", _percentile(99)),
    ("longest wait of a job, s", lambda run: f"{run.job_waits.max(initial=0.0):,.0f}"),
)

_TASKS: Sequence[tuple[str, _Show]] = (
    ("task slow-down, times", lambda run: f"{slow_down(run):.2f}"),
    ("running tasks, mean", lambda run: f"{mean_running(run):,.0f}"),
)

_OTHERS: Sequence[tuple[str, _Show]] = (
    ("fragmentation", lambda run: f"{run.fullness.fragmentation:.0%}"),
    ("unfairness: jobs, by", _unfair),
    ("decisions/s", lambda run: f"{run.speed.decisions_per_second:,.0f}"),
    ("events/s", lambda run: f"{run.speed.events_per_second:,.0f}"),
)

_COMPARED: Sequence[tuple[str, Callable[[Outcome, Outcome], str]]] = (
    ("makespan, % better", lambda first, run: f"{improvement(first.makespan, run.makespan):.1f}"),
    (
        "mean job time, % better",
        lambda first, run: f"{improvement(float(first.job_seconds.mean()), float(run.job_seconds.mean())):.1f}",
    ),
    (
        "median of job changes, %",
        lambda first, run: f"{float(np.median(job_changes(first.job_seconds, run.job_seconds))):.1f}",
    ),
    ("slowed jobs, %, by", _slowed),
)

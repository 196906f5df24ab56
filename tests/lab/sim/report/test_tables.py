"""Runs side by side: a column for each, or a line for each where they do not fit."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.report import figures, tables
from lab.sim.schedulers.first_fit import FirstFit
from lab.sim.workloads.workload import Job, Machines, Stage, Workload
from tests.service.costs import lines_of

CORE = np.array([1000.0, 0, 0, 0, 0, 0])


def outcome(policy="first", *, queues=("a", "b"), heartbeat=0.0):
    """Return a run of jobs of 10 s, one in each queue, which come at 0 s and take turns on one core."""
    jobs = [Job(queue, 0.0, [Stage("s", CORE, 0.0, 10.0, np.array([10.0]))], queue) for queue in queues]
    machines = Machines("one", np.array([[1000.0, 64, 100, 100, 100, 100]]))
    made = run(Workload("w", jobs), machines, FirstFit(), seed=1, settings=SimulationSettings(heartbeat))
    return replace(made, policy=policy)


def shown(runs, width=80):
    console = Console(width=width)
    with console.capture() as text:
        console.print(tables.table(runs, width))
    return text.get()


def cells(runs):
    return {line.name.strip(): list(line.cells) for line in tables.lines(runs)}


def test_few_runs_have_a_column_each():
    text = shown([outcome("kube-default"), outcome("dovetail")])
    assert "kube-default" in text
    assert "longest wait of a job, s" in text
    assert "\u2026" not in text


@pytest.mark.parametrize("width", [80, 120])
def test_many_runs_have_a_line_each_with_their_whole_names(width):
    names = [f"dovetail policy.fairness={place / 20:g}" for place in range(12)]
    text = shown([outcome(name) for name in names], width)
    assert all(name in text for name in names)
    assert "--report FILE and --json have all figures" in text
    assert "\u2026" not in text
    assert max(map(len, text.splitlines())) <= width


def test_runs_by_two_keys_are_told_apart_in_80_columns():
    names = [f"dovetail policy.fairness=0.25 policy.kappa={place}" for place in range(12)]
    text = shown([outcome(name) for name in names])
    assert all(word in text.split() for name in names for word in name.split())
    assert "\u2026" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_waits_and_job_times_by_queue_are_in_the_table_and_in_json():
    made = outcome()
    assert cells([made])["longest wait of a job, s"] == ["10"]
    assert (cells([made])["mean job time: a"], cells([made])["b"]) == (["10"], ["20"])
    [told] = tables.as_json([made])["runs"]
    assert (told["longest_wait"], told["mean_job_time_by_queue"]) == (10.0, {"a": 10.0, "b": 20.0})
    assert told["mean_use"]["cpu"] == 1.0
    assert "mean job time: a" not in cells([outcome(queues=("a",))])


def test_the_cost_of_job_times_by_queue_grows_with_the_queues_not_with_their_square():
    def lines(count):
        made = outcome(queues=[f"q{row}" for row in range(count)])
        assert len(tables.queue_seconds(made)) == count
        return lines_of(lambda: tables.queue_seconds(made))

    assert lines(200) < 5 * lines(50)


def test_what_is_measured_of_machines_counts_a_task_until_the_plan_that_sees_its_end():
    made = outcome(queues="abc", heartbeat=40.0)
    assert [job.ended for job in made.jobs] == [10, 50, 90]  # so the core is used for a quarter of the time
    assert tables.mean_use(made)[0] == 1
    assert "a task counts until the plan that sees its end" in tables.NOTES[0]


def test_resources_that_no_task_demands_and_reads_that_there_are_none_of_have_no_line():
    made = outcome()
    resources = {name.split(": ")[-1] for name in cells([made])} & {*made.axis}
    assert resources == {"cpu"}
    assert "local reads" not in cells([made])
    read = cells([made, replace(made, locality=0.5)])
    assert read["local reads"] == ["", "50%"]


def test_the_median_of_the_changes_is_called_so():
    assert cells([outcome(), outcome("again")])["median of job changes, %"] == ["", "0.0"]


def test_all_of_many_runs_are_drawn_and_an_empty_plot_warns_of_nothing():
    one = outcome()
    names = [f"run-{place}" for place in range(25)]
    axes = Figure().subplots()
    figures.draw_running(axes, dict.fromkeys(names, one.series))
    assert [line.get_label() for line in axes.get_lines()] == names
    assert [text.get_text() for text in axes.get_legend().get_texts()] == names
    assert figures.plots([one])  # no run to compare with: warnings are errors


def test_one_run_is_not_drawn_against_itself():
    runs = [outcome("first"), outcome("second")]
    for count, panels in ((1, 1), (2, 2)):
        plot, note = figures.plots(runs[:count])["Job time"]
        assert plot.count('id="axes_') == panels
        assert ("than under first" in note) == (count == 2)


def test_the_shares_of_queues_are_drawn_along_one_axis():
    short, long = outcome("short"), outcome("long", queues=("a", "b", "c", "d"))
    axes = Figure().subplots(2)
    figures.draw_shares(list(axes), [short, long])
    assert axes[0].get_xlim() == axes[1].get_xlim()

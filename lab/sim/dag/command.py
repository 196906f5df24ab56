"""The command `dovetail graph`."""

import json
from pathlib import Path

import click

from lab.errors import MissingExtra
from lab.options import TRACES, traces_option
from lab.report.files import ReportFile, write_report

_PLAIN_WIDTH = 100


@click.command()
@click.argument("workload", metavar="FILE|SPEC")
@click.option("--job", "name", metavar="NAME", help="The job, if the workload has several.")
@click.option("--machines", metavar="SPEC|FILE", help="The machines, as for simulate; all of one shape.")
@click.option(
    "--share", type=click.IntRange(1), help="How many of the machines (for tpch:QUERY, executors) the job may use."
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="The seed of all random numbers.")
@click.option(
    "--effort",
    type=click.IntRange(1),
    help="How long to search: some 10,000 a second.  [default: 3,000 and 3 a task, 20,000 at most]",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, with a rank for each task.")
@click.option("--report", type=ReportFile(), help="Also write a page with time charts: one HTML file.")
@traces_option
def graph(
    *,
    workload: str,
    name: str | None,
    machines: str | None,
    share: int | None,
    seed: int,
    effort: int | None,
    as_json: bool,
    report: Path | None,
    traces: Path | None,
) -> None:
    """Find in which order the tasks of one job should start, from its whole DAG.

    FILE is a workload as for simulate; SPEC names one (see simulate --list), or a TPC-H query of the
    traces, as in tpch:q5-100g. Shows the orders that were tried, what no order can pass, which stages
    are troublesome, and when each stage runs. Node selectors, taints and gangs do not count here.
    """
    MissingExtra.unless_installed("rich", *(("matplotlib",) if report else ()))
    from extender.graph import build
    from lab.report.terminal import console
    from lab.sim.dag import jobs, showing, tpch
    from lab.sim.runs import Run, inputs_of
    from lab.sim.workloads.parameters import Parameters

    folder = traces or TRACES
    if tpch.is_query(workload):
        if machines is not None:
            raise click.BadParameter("a query runs on executors; accepted: --share", param_hint="--machines")
        title, names, (dag, shared) = workload, ["executors"], tpch.query(workload, folder, share or 10)
    else:
        if machines is None:
            raise click.BadParameter(
                "is missing; accepted: as for simulate, 10x16c64g,disk=800M,net=1250M for example",
                param_hint="--machines",
            )
        replayed, cluster = inputs_of(Run(workload, machines, "tetris", seed, traces=folder), Parameters())
        job = jobs.job_of(replayed.jobs, name)
        title = job.name
        dag, shared, names = jobs.dag_of(job, cluster, share)
    order = build(dag, shared, seed=seed, effort=effort)
    try:
        if report is not None:
            from lab.sim.dag import charts

            write_report(report, charts.page(title, dag, shared, names, order))
    finally:
        if as_json:
            click.echo(json.dumps(showing.as_json(title, dag, shared, order)))
        else:
            console(_PLAIN_WIDTH).print(showing.text(title, dag, shared, order))

"""The command `dovetail experiment`: the papers' experiments again."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from extender.errors import DovetailError, MissingExtra
from extender.sim.commands import TRACES

if TYPE_CHECKING:
    from extender.experiments.running import Skipped
    from extender.experiments.sections import Part, Section

_FILE = click.Path(dir_okay=False, path_type=Path)
_PLAIN_WIDTH = 120
_TITLE = "The experiments of Tetris"


@click.group()
def experiment() -> None:
    """Run a paper's experiments again, and print its numbers beside ours."""


@experiment.command()
@click.option("--quick", is_flag=True, help="A small form, under a minute: to see that it works, not to quote.")
@click.option("--seeds", type=click.IntRange(1), help="How many seeds.  [default: 5; quick: 2]")
@click.option(
    "--first-seed",
    default=10,
    show_default=True,
    type=click.IntRange(0),
    help="The first seed; the planner was tuned on 0 to 2.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--report", type=_FILE, help="Also write a report with the figures: one HTML file.")
@click.option("--only", "only", multiple=True, metavar="PART", help="Only this part; can be repeated.")
@click.option(
    "--traces",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Folder of the workload traces. Default: {TRACES}, where it exists.",
)
@click.option("--processes", type=click.IntRange(1), help="How many runs at once.  [default: one per core]")
def tetris(
    quick: bool,
    seeds: int | None,
    first_seed: int,
    as_json: bool,
    report: Path | None,
    only: tuple[str, ...],
    traces: Path | None,
    processes: int | None,
) -> None:
    """Run the experiments of the Tetris paper: its suite, its Facebook trace, and what each part of it is worth.

    All runs are simulated, by the planner that the cluster runs. What cannot run is named with its reason, and the rest
    is done.
    """
    MissingExtra.unless_installed("rich", *(("matplotlib",) if report else ()))
    from extender.experiments.scales import FULL, QUICK
    from extender.experiments.tetris import parts
    from extender.sim.parallel import usable_cores

    scale = QUICK if quick else FULL
    chosen = parts(scale, range(first_seed, first_seed + (seeds or scale.seeds)), traces or TRACES)
    known = [part.name for part in chosen]
    unknown = [name for name in only if name not in known]
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r}; accepted: {', '.join(known)}", param_hint="--only")
    wanted = [part for part in chosen if part.name in (only or known)]
    sections, skipped = _run(wanted, processes or usable_cores())
    for it in skipped:
        click.echo(f"{it.part}: skipped: {it.reason}" + (f"\n{it.trace}" if it.trace else ""), err=True)
    if report:
        from extender.experiments import page

        page.write(report, _TITLE, scale.about, sections, [f"{it.part}: skipped: {it.reason}" for it in skipped])
    _print_json(sections) if as_json else _print_tables(scale.about, sections)
    if report:
        click.echo(f"report: {report.resolve()}", err=as_json)
    if not sections or any(it.trace for it in skipped):
        raise DovetailError("not everything could be run")


def _run(parts: "Sequence[Part]", processes: int) -> "tuple[list[Section], list[Skipped]]":
    from extender.experiments.running import run_parts, runs_of
    from extender.report import progress

    with progress.together(list(runs_of(parts)), "Simulating") as show:
        return run_parts(parts, processes=processes, show=show)


def _print_json(sections: "Sequence[Section]") -> None:
    from extender.report.rows import to_json

    click.echo(to_json([figure.row() for section in sections for figure in section.figures]))


def _print_tables(about: str, sections: "Sequence[Section]") -> None:
    from rich.console import Console

    from extender.experiments import tables

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=_PLAIN_WIDTH, highlight=False)
    console.print(about)
    tables.show(console, sections)

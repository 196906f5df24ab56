"""The command `dovetail control-plane`: build the pinned programs, list them, run them."""

import contextlib
import os
import shlex
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click

from lab.controlplane import pins, showing
from lab.controlplane.building import build as building
from lab.controlplane.building.build import Program
from lab.errors import MissingExtra

kubernetes_option = click.option(
    "--kubernetes",
    type=click.Choice(pins.KUBERNETES_MINORS),
    default=pins.DEFAULT_KUBERNETES,
    show_default=True,
    help="The pinned minor version.",
)


_PATHS = ("path", "built at")
_PLAIN_WIDTH = 130


@click.group("control-plane")
def control_plane() -> None:
    """Build and run a whole real Kubernetes control plane on loopback, with simulated nodes.

    The programs are built from pinned sources into ~/.cache/dovetail (or under XDG_CACHE_HOME). Programs in the folder
    that KUBEBUILDER_ASSETS names are used instead.
    """


@control_plane.command()
@kubernetes_option
def build(kubernetes: str) -> None:
    """Build what is missing, and say where each program came from."""
    show_programs(provide(kubernetes, tools=True).values())


@control_plane.command()
def versions() -> None:
    """List what is pinned, and what of it is built."""
    cache = building.default_cache(os.environ)
    parts = {part.name: part for minor in pins.KUBERNETES_MINORS for part in pins.control_plane(minor)}
    parts |= {part.name: part for part in pins.tools()}
    rows = [(part.name, part.version, ".".join(map(str, part.go)), _built_at(part, cache)) for part in parts.values()]
    _show_table(("part", "version", "needs Go", "built at"), rows)


@control_plane.command()
@kubernetes_option
@click.option("--nodes", default=3, show_default=True, type=click.IntRange(0, 5000), help="How many nodes to simulate.")
def run(kubernetes: str, nodes: int) -> None:
    """Run a control plane with nodes and a stock kube-scheduler, until Ctrl-C."""
    programs = provide(kubernetes)
    MissingExtra.unless_installed("rich", "trustme")
    from lab.controlplane import builders, workload
    from lab.controlplane.running import ControlPlane

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), ControlPlane(paths(programs)) as running:
        running.add_scheduler()
        workload.create_nodes(running.client(), [builders.node(f"node-{number}") for number in range(nodes)])
        click.echo(f"Kubernetes {running.version()} at {running.url}, {nodes} nodes of 8 CPUs and 32Gi")
        click.echo(f"logs: {running.folder / 'logs'}")
        click.echo(f"Try it:  {_first_line(running.admin)}")
        click.echo("Ctrl-C stops it and removes everything.")
        signal.pause()


def provide(kubernetes: str = pins.DEFAULT_KUBERNETES, *, tools: bool = False) -> dict[str, Program]:
    """Return the programs of a control plane, and the `tools` of tests if asked for; build what is missing."""
    assets = os.environ.get(building.ASSETS)
    return building.provide(
        [*pins.control_plane(kubernetes), *(pins.tools() if tools else [])],
        cache=building.default_cache(os.environ),
        assets=Path(assets) if assets else None,
        show=showing.aloud,
    )


def is_built(kubernetes: str = pins.DEFAULT_KUBERNETES) -> bool:
    """Tell whether `provide` would have nothing to build."""
    assets = os.environ.get(building.ASSETS)
    cache = building.default_cache(os.environ)
    return all(
        building.is_built(part, cache) or building.is_among(part, Path(assets) if assets else None)
        for part in pins.control_plane(kubernetes)
    )


def _first_line(kubeconfig: Path) -> str:
    """Return what to type in a shell to see the nodes."""
    return f"export KUBECONFIG={shlex.quote(str(kubeconfig))}  &&  kubectl get nodes"


def paths(programs: Mapping[str, Program]) -> dict[str, Path]:
    """Return where each program is, as `ControlPlane` wants it."""
    return {name: program.path for name, program in programs.items()}


def show_programs(programs: Iterable[Program]) -> None:
    """Print a table of programs: version, how each was had, where it is."""
    rows = [(program.name, program.version, program.origin, _short(program.path)) for program in programs]
    _show_table(("program", "version", "origin", "path"), rows)


def _built_at(part: pins.Part, cache: Path) -> str:
    return _short(building.cache_folder(part, cache)) if building.is_built(part, cache) else "not built"


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    MissingExtra.unless_installed("rich", "trustme")
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for head in heads:
        table.add_column(head, overflow="fold", no_wrap=head not in _PATHS)
    for row in rows:
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PLAIN_WIDTH)
    console.print(table)

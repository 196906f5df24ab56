"""The command `dovetail playground`: run it, and what one needs in it where kubectl is missing."""

import contextlib
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, TextIO

import click
import yaml

from extender.errors import ClusterError
from lab.controlplane.commands import kubernetes_option, paths, provide
from lab.errors import MissingExtra
from lab.options import refuse_before
from lab.report.files import ReportFile

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

    from lab.controlplane.running import ControlPlane

_KUBECONFIG = Path("out/playground.kubeconfig")
_FILE = click.Path(dir_okay=False, path_type=Path)
_MOST_NODES = len(ascii_lowercase)  # node-a to node-z

_kubeconfig_option = click.option(
    "--kubeconfig",
    type=_FILE,
    envvar="KUBECONFIG",
    default=_KUBECONFIG,
    show_default=True,
    help="How to reach the playground. $KUBECONFIG counts, too.",
)


@click.group(invoke_without_command=True)
@kubernetes_option
@click.option(
    "--nodes",
    "node_count",
    default=6,
    show_default=True,
    type=click.IntRange(1, _MOST_NODES),
    help="How many nodes to simulate.",
)
@click.option("--kubeconfig", type=_FILE, default=_KUBECONFIG, show_default=True, help="Where the kubeconfig goes.")
@click.pass_context
def playground(context: click.Context, kubernetes: str, node_count: int, kubeconfig: Path) -> None:
    """Run a cluster to try Dovetail on, until Ctrl-C.

    The control plane is real and runs on loopback; kube-scheduler asks `dovetail serve`, `dovetail control` releases
    held pods, and three queues are declared. The nodes are simulated and declare disk and network.
    """
    if context.invoked_subcommand is not None:
        refuse_before(context)
        return
    kubeconfig = ReportFile().convert(kubeconfig, None, context)  # before anything is started
    programs = provide(kubernetes)
    MissingExtra.unless_installed("rich", "trustme")
    from lab.controlplane.running import ControlPlane
    from lab.playground import cluster

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs beside it with SIGINT ignored
    with contextlib.suppress(KeyboardInterrupt), ControlPlane(paths(programs)) as control_plane:
        cluster.start_dovetail(control_plane, node_count)
        with _kubeconfig_at(kubeconfig, control_plane.admin):
            click.echo(_greeting(control_plane, node_count, kubeconfig))
            signal.pause()


@playground.command("apply")
@click.argument("files", nargs=-1, required=True, type=click.File())
@_kubeconfig_option
def apply_files(files: tuple[TextIO, ...], kubeconfig: Path) -> None:
    """Apply manifests, as `kubectl apply --server-side` does; `-` reads standard input."""
    from lab.controlplane import rest

    client = _client(kubeconfig)
    for manifests in [_manifests(file) for file in files]:
        for manifest in rest.apply(client, manifests):
            click.echo(f"{manifest['kind'].lower()}/{manifest['metadata']['name']} applied")


@playground.command("fill")
@click.option(
    "--pods", "pods_per_queue", default=30, show_default=True, type=click.IntRange(1, 100), help="How many per queue."
)
@_kubeconfig_option
def fill(pods_per_queue: int, kubeconfig: Path) -> None:
    """Let pods of the three queues wait: more than the nodes can run at once. Earlier ones are deleted."""
    from lab.controlplane import workload
    from lab.playground import examples

    client = _client(kubeconfig)
    workload.delete_pods(client, "default", examples.EXAMPLE_LABEL)
    pods = workload.create_pods(client, examples.pods(pods_per_queue))
    click.echo(
        f"{len(pods)} pods wait for their turn; see `dovetail queues` and `dovetail explain pod default/research-00`"
    )


@playground.command("pods")
@_kubeconfig_option
def list_pods(kubeconfig: Path) -> None:
    """List the pods of all namespaces: phase, node, and whether our gate holds them."""
    from lab.controlplane import workload

    rows = [
        (
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}",
            "held" if pod["spec"].get("schedulingGates") else pod["status"]["phase"],
            pod["spec"].get("nodeName", "-"),
        )
        for pod in workload.pods(_client(kubeconfig))
    ]
    for row in [("POD", "STATUS", "NODE"), *rows]:
        click.echo(f"{row[0]:<40} {row[1]:<10} {row[2]}")


@contextmanager
def _kubeconfig_at(path: Path, source: Path) -> Iterator[None]:
    """Write the kubeconfig where it was asked for; remove it at the end, for the cluster is gone then."""
    shutil.copyfile(source, path)
    path.chmod(0o600)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _manifests(file: TextIO) -> list[dict[str, Any]]:
    """Return the manifests of a file. Raises click.BadParameter for one that is none, naming what it needs."""
    from extender.settings import yaml_mistake

    try:
        text = file.read()
        manifests = [manifest for manifest in yaml.safe_load_all(text) if manifest]
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"{file.name} is not text: {error}; accepted: manifests in YAML") from None
    except yaml.YAMLError as error:
        raise click.BadParameter(f"{file.name} cannot be read as YAML: {yaml_mistake(error, text)}") from None
    for number, manifest in enumerate(manifests, 1):
        metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
        if not (isinstance(metadata, dict) and all(map(manifest.get, ("apiVersion", "kind"))) and metadata.get("name")):
            raise click.BadParameter(f"{file.name}, manifest {number}; needed: apiVersion, kind and metadata.name")
    return manifests


def _client(kubeconfig: Path) -> "ApiClient":
    """Return a client of the playground. Raises ClusterError where none runs."""
    from extender.adapters.kube.api import connect
    from lab.controlplane import rest

    start = "start `dovetail playground` in another terminal"
    if not kubeconfig.is_file():
        raise ClusterError(f"{kubeconfig} is not there; {start}")
    api = connect(kubeconfig)
    try:
        api.check_version()
    except ClusterError as error:
        raise ClusterError(f"{start}: {error}") from None
    return rest.client(kubeconfig)


def _greeting(control_plane: "ControlPlane", node_count: int, kubeconfig: Path) -> str:
    from lab.controlplane.launches import CONTROL, EXTENDER
    from lab.playground import cluster

    queues = ", ".join(f"{name} (weight {weight})" for name, weight in cluster.QUEUES.items())
    serve, control = (f"http://127.0.0.1:{control_plane.ports[name]}" for name in (EXTENDER, CONTROL))
    return f"""\
Kubernetes {control_plane.version()} at {control_plane.url}
Nodes:  {node_count}, simulated: {cluster.NODE_CPU} CPUs, {cluster.NODE_MEMORY}, disk 400 MB/s, network 125 MB/s
Queues: {queues}
Logs:   {control_plane.folder / "logs"}

In another terminal:

  export KUBECONFIG={shlex.quote(str(kubeconfig.resolve()))}
  export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH
  dovetail playground fill                    pods of three queues wait for their turn
  dovetail queues                             who has how much of the cluster, and who waits
  dovetail explain pod default/research-20    why a pod waits, or went where it went
  dovetail playground apply FILE              apply a manifest of your own, as kubectl does
  dovetail playground pods                    all pods, with their nodes
  dovetail doctor --extender {serve} --control {control}

In a namespace labelled dovetail.dev/managed=true pods wait for their turn without saying so (from Kubernetes 1.36 on):
the gate is written into those that are created while somebody waits for room.

Ready. Ctrl-C stops it and removes everything."""

"""How fast pods get onto a real cluster: by the stock scheduler, asked about a sample or all nodes, and with Dovetail.

One control plane for each size; its nodes are made once. The contenders take turns on it, so that noise hits all
alike: before each run all pods go and the scheduler is another, after a few pods to warm up and a moment of quiet. The
clock runs from the first create call to the last bind, with every write in between.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from charts.render import NAMESPACE
from extender.cluster.model import HOLD_GATE
from extender.cluster.resources import IO_DIMENSIONS
from lab.bench.cluster import truth
from lab.bench.cluster.bindings import Bindings
from lab.bench.cluster.contenders import CONTENDERS, BenchContender
from lab.bench.cluster.latency import BURST, STEADY, mean_seconds
from lab.bench.cluster.throughput import CLIENT, OTHERS, ThroughputRun
from lab.controlplane import builders, processes, workload
from lab.controlplane.builders import Manifest
from lab.controlplane.configurations import dovetail_configuration, stock_configuration
from lab.controlplane.gating import gating
from lab.controlplane.launches import CONTROL, EXTENDER, SCHEDULER
from lab.controlplane.requests import writes_to_pods
from lab.controlplane.running import ControlPlane
from lab.errors import ControlPlaneError

_PROFILE = "dovetail"
"""The schedulerName of all pods, in all runs: the one that `control` looks after by default."""

_WARM_UP_PODS = 20
_WARM_UP_SECONDS = 60.0
_NODES_READY_SECONDS = 240.0
_QUIET_SHARE = 0.15
_QUIET_LOOK_SECONDS = 0.5
_QUIET_LOOKS = 3
_QUIET_LIMIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ClusterSize:
    """How many nodes there are; how many pods are created in each run, by how many jobs; how many runs.

    `limit_seconds` is how long a run may take before it is an error. `burst` pods come at once, and in the first round
    `steady` of them at an even pace, to see how long each takes; 0: not measured.
    """

    nodes: int
    pods: int = 1_000
    jobs: int = 10
    runs: int = 3
    limit_seconds: float = 180.0
    burst: int = 0
    steady: int = 0


def measure(
    programs: Mapping[str, Path],
    size: ClusterSize,
    progress: Callable[[], None],
    contenders: Sequence[BenchContender] = CONTENDERS,
) -> Iterator[ThroughputRun]:
    """Yield the runs at one size, contenders in turn. Raises ControlPlaneError where pods are not bound in time."""
    with ControlPlane(programs) as control_plane:
        nodes = [_node(number) for number in range(size.nodes)]
        workload.create_nodes(control_plane.client(), nodes, ready=_NODES_READY_SECONDS)
        for number in range(size.runs):
            start = number % len(contenders)
            for contender in (*contenders[start:], *contenders[:start]):
                yield _run(control_plane, size, contender, first=number == 0)
                progress()


def pod_manifests(size: ClusterSize, *, gated: bool) -> list[Manifest]:
    """Return the pods of one run. The jobs' pods come in turn; those of one job ask for the same, of no two jobs."""
    return [_pod(f"pod-{number:05d}", number % size.jobs, gated=gated) for number in range(size.pods)]


def _run(control_plane: ControlPlane, size: ClusterSize, contender: BenchContender, *, first: bool) -> ThroughputRun:
    with ExitStack() as ending:
        if contender.policies:
            ending.enter_context(gating(control_plane, str((contender.settings or {})["order"])))
        for component in _start(control_plane, contender):
            ending.callback(control_plane.remove_scheduler, component)
        _warm_up(control_plane, contender)
        quiet = _wait_quiet(control_plane)
        result = _timed(control_plane, size, contender, quiet=quiet)
        workload.delete_all_pods(control_plane.client(), seconds=size.limit_seconds)
        return replace(result, latency=_latency(control_plane, size, contender, first=first))


def _latency(
    control_plane: ControlPlane, size: ClusterSize, contender: BenchContender, *, first: bool
) -> dict[str, float]:
    """Return how long pods take in the mean from creation to binding, by how they come."""
    counts = {BURST: size.burst, STEADY: size.steady if first else 0} if contender.timed else {}
    latencies = {}
    for way, count in counts.items():
        if count:
            manifests = [
                _pod(f"{way}-{number:05d}", number % size.jobs, gated=contender.gated) for number in range(count)
            ]
            _wait_quiet(control_plane)
            latencies[way] = mean_seconds(control_plane.client(), manifests, way, size.limit_seconds)
            workload.delete_all_pods(control_plane.client(), seconds=size.limit_seconds)
    return latencies


def _start(control_plane: ControlPlane, contender: BenchContender) -> list[str]:
    """Start what the contender needs; return the components, the last to stop first."""
    started: list[str] = []
    lease = {"namespace": NAMESPACE if contender.policies else "default"}
    settings = {**(contender.settings or {}), "control": {"lease": lease}}
    url = None
    if contender.settings is not None:
        url = control_plane.add_extender(settings)
        started.append(EXTENDER)
    control_plane.add_scheduler(_configuration(contender, url))
    started.append(SCHEDULER)
    if contender.with_control:
        control_plane.add_control(settings)
        started.append(CONTROL)
    return started


def _configuration(contender: BenchContender, url: str | None) -> dict[str, Any]:
    configuration = stock_configuration() if url is None else dovetail_configuration(url)
    profiles = [{**profile, "schedulerName": _PROFILE} for profile in configuration.get("profiles", [{}])]
    asked = {} if contender.percentage is None else {"percentageOfNodesToScore": contender.percentage}
    return {**configuration, "profiles": profiles, **asked}


def _warm_up(control_plane: ControlPlane, contender: BenchContender) -> None:
    """Have a few pods scheduled: then everything is connected, and leads."""
    client = control_plane.client()
    manifests = [_pod(f"warm-{number:02d}", 0, gated=contender.gated) for number in range(_WARM_UP_PODS)]
    with Bindings(client, _names(manifests)) as bindings:
        workload.create_pods(client, manifests)
        _wait_bound(bindings, contender, control_plane, len(manifests), _WARM_UP_SECONDS)
    workload.delete_all_pods(client)


def _wait_quiet(control_plane: ControlPlane) -> bool:
    """Wait until the control plane's processes have next to nothing to do; return False where that does not come."""
    limit = time.monotonic() + _QUIET_LIMIT_SECONDS
    quiet = 0
    while quiet < _QUIET_LOOKS:
        before = sum(processes.cpu_seconds(control_plane.pids).values())
        time.sleep(_QUIET_LOOK_SECONDS)
        used = sum(processes.cpu_seconds(control_plane.pids).values()) - before
        quiet = quiet + 1 if used < _QUIET_SHARE * _QUIET_LOOK_SECONDS else 0
        if time.monotonic() > limit:
            return False
    return True


def _timed(control_plane: ControlPlane, size: ClusterSize, contender: BenchContender, *, quiet: bool) -> ThroughputRun:
    client = control_plane.client()
    manifests = pod_manifests(size, gated=contender.gated)
    with Bindings(client, _names(manifests)) as bindings:
        written = writes_to_pods(client)
        before, begun = _cpu(control_plane), time.monotonic()
        workload.create_pods(client, manifests)
        created = time.monotonic() - begun
        ended = _wait_bound(bindings, contender, control_plane, size.pods, size.limit_seconds - created)
        cpu = _since(before, _cpu(control_plane))
        written = writes_to_pods(client) - written
    pods = workload.pods(client)
    return ThroughputRun(
        contender=contender,
        nodes=size.nodes,
        pods=size.pods,
        seconds=ended - begun,
        created=created,
        cpu=cpu,
        off_nominated=truth.off_nominated(pods),
        over_allocated=len(truth.over_allocated(workload.nodes(client), pods)),
        quiet=quiet,
        writes=written,
    )


def _wait_bound(
    bindings: Bindings, contender: BenchContender, control_plane: ControlPlane, pods: int, seconds: float
) -> float:
    """Return when the last pod was bound. Raises ControlPlaneError where that takes too long."""
    seconds = max(seconds, 0.0)
    ended = bindings.wait(seconds)
    if ended is None:
        raise ControlPlaneError(
            f"{contender.name}: {bindings.missing} of {pods} pods were not bound {seconds:.0f} s after the last "
            f"was created; logs: {control_plane.folder / 'logs'}"
        )
    return ended


def _cpu(control_plane: ControlPlane) -> dict[str, float]:
    """Return the CPU time that every process, this one, and the whole machine have used so far."""
    used = {**processes.cpu_seconds(control_plane.pids), CLIENT: time.process_time()}
    return {**used, OTHERS: processes.machine_seconds()}


def _since(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return what was used meanwhile; of the machine what is none of ours."""
    used = {name: after[name] - before[name] for name in after}
    machine = used.pop(OTHERS)
    return {**used, OTHERS: max(machine - sum(used.values()), 0.0)}


def _names(manifests: Sequence[Manifest]) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in manifests]


def _node(number: int) -> Manifest:
    rates = dict.fromkeys(IO_DIMENSIONS, "1G")
    return builders.node(f"node-{number:05d}", cpu=16, memory="64Gi", capacity=rates)


def _pod(name: str, job: int, *, gated: bool) -> Manifest:
    """Return a pod of a job: small in every dimension, heavier in another from job to job."""
    rates = {
        dimension: f"{10 if job % len(IO_DIMENSIONS) == place else 1}M" for place, dimension in enumerate(IO_DIMENSIONS)
    }
    return builders.pod(
        name,
        cpu=f"{100 + 37 * job % 200}m",
        memory=f"{128 + job}Mi",
        demand=rates,
        scheduler_name=_PROFILE,
        labels={"dovetail.dev/job": f"job-{job}"},
        spec={"schedulingGates": [{"name": HOLD_GATE}]} if gated else None,
    )

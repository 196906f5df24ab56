"""What the phases act with: nodes full to the last millicore, Jobs, and what pods use."""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from kubernetes.client import ApiClient

from extender.cluster.model import HOLD_GATE
from extender.cluster.resources import CPU, DISK_READ, MEMORY
from lab.controlplane import builders, rest, workload
from lab.controlplane.builders import Manifest
from lab.experiments.ubis.real.kills import Kills
from lab.experiments.ubis.real.plane import Plane
from lab.experiments.ubis.real.recording import USAGE, PodState, use_of
from lab.experiments.ubis.real.scale import BASE_USE, DIMENSIONS, OFFERED, REGULAR_PODS, RealScale

JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOB_LABEL = "batch.kubernetes.io/job-name"
_PODS = "/api/v1/namespaces/default/pods"
_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_THREADS = 8


@dataclass(frozen=True, slots=True)
class Span:
    """A phase, and from when to when it was; of an outage `kind` says how Prometheus failed."""

    name: str
    begun: float
    ended: float
    kind: str = ""


@dataclass
class ExperimentCluster:
    """The cluster with its nodes; `spans` are the phases so far, `completions` how many pods each Job is to end."""

    plane: Plane
    scale: RealScale
    kills: Kills
    nodes: tuple[str, ...]
    spans: list[Span] = field(default_factory=list)
    completions: dict[str, int] = field(default_factory=dict)

    @property
    def client(self) -> ApiClient:
        """Return a client that may do everything."""
        return self.plane.control_plane.client()

    def wait(self, what: str, condition: Callable[[], object], seconds: float = 120.0) -> None:
        """Wait until something holds. Raises ControlPlaneError where that takes too long."""

        def holds() -> object:
            self.kills.check()
            return condition()

        workload.wait_until(holds, seconds, what, every=0.2)

    def begin(self) -> None:
        """Make the nodes and the regular pods that fill them, and wait until all are measured."""
        workload.create_nodes(self.client, [node_manifest(name) for name in self.nodes])
        regular = [regular_manifest(node, number) for node in self.nodes for number in range(REGULAR_PODS)]
        workload.create_pods(self.client, regular)
        self.wait_measured()

    def wait_measured(self) -> None:
        """Wait until both replicas of `control` hold the large nodes for measured."""
        self.wait("all nodes to be measured", lambda: all((n or 0) >= len(self.nodes) for n in self.plane.measured()))

    def use(self, node: str, dimension: str) -> float:
        """Return which part of a node its pods use now."""
        return sum(state.use[dimension] for state in self.plane.recording.on(node)) / OFFERED[dimension]

    def opportunistic(self, node: str | None = None) -> list[PodState]:
        """Return the opportunistic pods on a node, or on any."""
        states = self.plane.recording.now()
        return [state for state in states if state.there and state.opportunistic and node in (None, state.node)]

    def set_regular_use(self, node: str, part: Mapping[str, float]) -> None:
        """Let the regular pods of the start use these parts of their node together from now on, else BASE_USE."""
        names = [state.name for state in self.plane.recording.on(node) if state.name.startswith("regular-")]
        base = {dimension: BASE_USE[dimension] * len(names) / REGULAR_PODS for dimension in DIMENSIONS}
        use = {**base, **part}
        each = usage({dimension: use[dimension] * OFFERED[dimension] / len(names) for dimension in DIMENSIONS})
        self._in_threads(lambda name: self._annotate(name, each), names)
        wanted = use_of({"metadata": {"annotations": each}})

        def shown() -> bool:
            states = [state for state in self.plane.recording.on(node) if state.name in names]
            return all(state.use == wanted for state in states)

        self.wait("what pods use to be seen", shown)

    def overload(self, node: str, dimension: str, total: float) -> None:
        """Let the regular pods of a node use so much more that all its pods use this part of it."""
        regular = [state for state in self.plane.recording.on(node) if state.name.startswith("regular-")]
        others = self.use(node, dimension) - sum(state.use[dimension] for state in regular) / OFFERED[dimension]
        self.set_regular_use(node, {dimension: total - others})

    def create_job(self, name: str, count: int, demand: Mapping[str, float], **spec: object) -> None:
        """Create a Job of held pods that use what they demand; an eviction does not count against it."""
        self.completions[name] = count
        ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
        job = {
            "completions": count,
            "parallelism": count,
            "podFailurePolicy": {"rules": [ignored]},
            "template": task_template(name, demand, spec),
        }
        rest.request(self.client, "POST", JOBS, {"metadata": {"name": name}, "spec": job})

    def create_priority(self, name: str) -> None:
        """Create a PriorityClass whose pods go first, and preempt nobody."""
        body = {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": "Never"}
        rest.request(self.client, "POST", _PRIORITIES, body)

    def protect(self, job: str, count: int) -> None:
        """Let a PodDisruptionBudget forbid the eviction of any pod of a Job."""
        spec = {"minAvailable": count, "selector": {"matchLabels": {JOB_LABEL: job}}}
        rest.request(self.client, "POST", _BUDGETS, {"metadata": {"name": job}, "spec": spec})

        def known() -> bool:
            status = rest.request(self.client, "GET", f"{_BUDGETS}/{job}").get("status", {})
            return bool(status.get("expectedPods") and not status.get("disruptionsAllowed", 1))

        self.wait(f"the budget of {job} to be in force", known)

    def unprotect(self, job: str) -> None:
        """Take the PodDisruptionBudget of a Job away."""
        rest.request(self.client, "DELETE", f"{_BUDGETS}/{job}")

    def end_pods(self, names: Iterable[str]) -> None:
        """Let pods end well, as if their work was done."""
        self._in_threads(self._succeed, names)

    def job_counts(self, name: str) -> tuple[int, int]:
        """Return how many pods of a Job have succeeded, and how many failed."""
        status = rest.request(self.client, "GET", f"{JOBS}/{name}").get("status", {})
        return status.get("succeeded", 0), status.get("failed", 0)

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)
        self.kills.check()

    def _annotate(self, name: str, annotations: Mapping[str, str]) -> None:
        patch = {"metadata": {"annotations": dict(annotations)}}
        rest.request(self.client, "PATCH", f"{_PODS}/{name}", patch, content=rest.MERGE)

    def _succeed(self, name: str) -> None:
        state = {"terminated": {"exitCode": 0, "reason": "Completed"}}
        container = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        over = [{"type": kind, "status": "False", "reason": "PodCompleted"} for kind in ("Ready", "ContainersReady")]
        status = {"status": {"phase": "Succeeded", "conditions": over, "containerStatuses": [container]}}
        try:
            rest.request(self.client, "PATCH", f"{_PODS}/{name}/status", status, content=rest.STRATEGIC)
        except rest.RequestRefused as error:
            if error.status != 404:  # evicted meanwhile: its Job makes another
                raise

    def _in_threads(self, act: Callable[[str], None], names: Iterable[str]) -> None:
        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(act, names))


def usage(amounts: Mapping[str, float]) -> dict[str, str]:
    """Return the annotations of a pod that uses so much: millicores, bytes, bytes per second."""
    texts = {CPU: f"{amounts[CPU]:.0f}m", MEMORY: f"{amounts[MEMORY]:.0f}", DISK_READ: f"{amounts[DISK_READ]:.0f}"}
    return {USAGE[name]: text for name, text in texts.items()}


def node_manifest(name: str) -> Manifest:
    """Return a node that offers OFFERED."""
    cpu, memory = f"{OFFERED[CPU]:.0f}m", f"{OFFERED[MEMORY]:.0f}"
    return builders.node(name, cpu=cpu, memory=memory, capacity={DISK_READ: f"{OFFERED[DISK_READ]:.0f}"})


def regular_manifest(node: str, number: int) -> Manifest:
    """Return one of the regular pods that together reserve all of a node, and use BASE_USE of it."""
    part = {dimension: OFFERED[dimension] / REGULAR_PODS for dimension in DIMENSIONS}
    return builders.pod(
        f"regular-{node}-{number}",
        cpu=f"{part[CPU]:.0f}m",
        memory=f"{part[MEMORY]:.0f}",
        annotations=usage({dimension: amount * BASE_USE[dimension] for dimension, amount in part.items()}),
        spec={"nodeName": node},
    )


def task_template(name: str, demand: Mapping[str, float], spec: Mapping[str, object]) -> Manifest:
    """Return the template of a Job's held pods, which use what they demand."""
    disk = {DISK_READ: f"{demand[DISK_READ]:.0f}"} if demand[DISK_READ] else None
    pod = builders.pod(
        name,
        cpu=f"{demand[CPU]:.0f}m",
        memory=f"{demand[MEMORY]:.0f}",
        demand=disk,
        annotations=usage(demand),
        spec={"schedulingGates": [{"name": HOLD_GATE}], **spec},
    )
    return {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}

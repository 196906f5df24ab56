"""The way out: first no policy of ours that gates pods, then nothing of ours on any pod that waits.

Each write can be repeated, and may meet a leader that still releases: whoever comes second finds nothing left to do. On
one pod the gate goes first, so that a leader has done with it, and the annotation last: by it an interrupted run finds
the nomination again. Gates and nominations of others are never touched.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from extender.cluster.model import HOLD_GATE, PROMISED_ANNOTATION
from extender.errors import ClusterError

POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
PODS = "/api/v1/pods"

SETTLE_SECONDS = 5.0
"""API servers go on with a policy for a second or two after its deletion; each of several learns of it by itself."""

_OURS = ("labelSelector", "app.kubernetes.io/name=dovetail")
_UNBOUND = ("fieldSelector", "spec.nodeName=")
_PAGE = 500
_WRITERS = 8
_ROUNDS = 30
_FRUITLESS_ROUNDS = 3
_PAUSE_SECONDS = 1.0

_GONE, _EXPIRED = 404, 410
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_UNGATE = {"spec": {"schedulingGates": [{"$patch": "delete", "name": HOLD_GATE}]}}
_FORGET = {"metadata": {"annotations": {PROMISED_ANNOTATION: None}}}
_ANNOTATION_POINTER = "/metadata/annotations/" + PROMISED_ANNOTATION.replace("/", "~1")

Show = Callable[[int, int], None]
"""Shows how many pods of a round are done, of how many."""


class Cluster(Protocol):
    """What draining needs of the API server. Every failure is a ClusterError, with the status where it answered."""

    def read(self, path: str, params: Sequence[tuple[str, str]] = ()) -> Any:  # noqa: ANN401 - whatever JSON is there
        """Return an object or a list."""

    def patch(self, path: str, body: object, content: str) -> None:
        """Change an object."""

    def delete(self, path: str) -> None:
        """Delete an object."""


@dataclass(frozen=True, slots=True)
class GatedPod:
    """A pod that waits with something of ours on it: the gate, our annotation, a nomination that the two agree on."""

    namespace: str
    name: str
    gated: bool
    promised: str | None
    nominated: bool

    @property
    def path(self) -> str:
        """Where the API server has it."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is of ours now: names of policies and bindings, pods, and how many pods wait for our schedulers."""

    policies: tuple[str, ...]
    bindings: tuple[str, ...]
    held: tuple[GatedPod, ...]
    waiting: int


@dataclass(frozen=True, slots=True)
class Drained:
    """What was removed; `left` are the pods where something of ours still is, with the reason.

    `waiting` pods are not bound and name one of our schedulers: if that goes away too, nobody places them.
    """

    policies: tuple[str, ...]
    bindings: tuple[str, ...]
    gates: int
    nominations: int
    left: Mapping[str, str]
    waiting: int


def look(cluster: Cluster, schedulers: frozenset[str]) -> Seen:
    """Return what `drain` would remove, and change nothing."""
    held, waiting = _waiting_pods(cluster, schedulers)
    return Seen(_named(cluster, POLICIES) or (), _named(cluster, BINDINGS) or (), held, waiting)


def drain(
    cluster: Cluster,
    schedulers: frozenset[str],
    *,
    show: Show = lambda _done, _total: None,
    pause: Callable[[float], None] = time.sleep,
) -> Drained:
    """Remove everything of ours, and look again until there is nothing left; `schedulers` are those that we came with.

    Ends with pods in `left` where writes are refused again and again, or new pods carry the gate in their templates.
    Raises ClusterError where the API server cannot be reached, or refuses to let us look.
    """
    bindings, policies = _removed(cluster, BINDINGS), _removed(cluster, POLICIES)
    settled = bindings is None and policies is None
    gates = nominations = fruitless = 0
    problems: dict[str, str] = {}
    held, waiting = _waiting_pods(cluster, schedulers)
    for _ in range(_ROUNDS):
        if not held and settled:
            break
        done = _release_all(cluster, held, show)
        gates += sum(it.gate for it in done)
        nominations += sum(it.nomination for it in done)
        problems = {f"{it.pod.namespace}/{it.pod.name}": it.problem for it in done if it.problem}
        fruitless = fruitless + 1 if problems and len(problems) == len(done) else 0
        if fruitless == _FRUITLESS_ROUNDS:
            break
        if not settled:
            pause(SETTLE_SECONDS)
        elif problems:
            pause(_PAUSE_SECONDS)
        settled = True
        held, waiting = _waiting_pods(cluster, schedulers)
    names = (f"{it.namespace}/{it.name}" for it in held)
    left = {name: problems.get(name, "created with the gate since") for name in names}
    return Drained(policies or (), bindings or (), gates, nominations, left, waiting)


@dataclass(frozen=True, slots=True)
class _Done:
    """What became of one pod."""

    pod: GatedPod
    gate: bool
    nomination: bool
    problem: str


def _release_all(cluster: Cluster, held: Sequence[GatedPod], show: Show) -> list[_Done]:
    done: list[_Done] = []
    with ThreadPoolExecutor(_WRITERS) as writers:
        for it in writers.map(lambda pod: _release(cluster, pod), held):
            done.append(it)
            show(len(done), len(held))
    return done


def _release(cluster: Cluster, pod: GatedPod) -> _Done:
    """Take what is ours off one pod. What the API server refuses is the pod's problem, and the next round's."""
    gate = nomination = False
    try:
        if pod.gated:
            cluster.patch(pod.path, _UNGATE, _STRATEGIC_PATCH)
            gate = True
        if pod.nominated:
            cluster.patch(f"{pod.path}/status", _clear(pod.promised), _JSON_PATCH)
            nomination = True
        elif pod.promised is not None:
            cluster.patch(pod.path, _FORGET, _MERGE_PATCH)
    except ClusterError as error:
        if error.status is None:
            raise
        problem = "" if error.status == _GONE else str(error)
        return _Done(pod, gate, nomination, problem)
    return _Done(pod, gate, nomination, "")


def _clear(promised: str | None) -> list[dict[str, object]]:
    """Return the patch that removes nomination and annotation, if both still name this node."""
    return [
        {"op": "test", "path": "/status/nominatedNodeName", "value": promised},
        {"op": "test", "path": _ANNOTATION_POINTER, "value": promised},
        {"op": "remove", "path": "/status/nominatedNodeName"},
        {"op": "remove", "path": _ANNOTATION_POINTER},
    ]


def _removed(cluster: Cluster, path: str) -> tuple[str, ...] | None:
    """Delete what carries our label there; return the names, None where the API server has no such kind."""
    names = _named(cluster, path)
    for name in names or ():
        try:
            cluster.delete(f"{path}/{quote(name)}")
        except ClusterError as error:
            if error.status != _GONE:
                raise
    return names


def _named(cluster: Cluster, path: str) -> tuple[str, ...] | None:
    try:
        return tuple(it["metadata"]["name"] for it in _listed(cluster, path, _OURS))
    except ClusterError as error:
        if error.status != _GONE:
            raise
        return None


def _waiting_pods(cluster: Cluster, schedulers: frozenset[str]) -> tuple[tuple[GatedPod, ...], int]:
    """Return the unbound pods that carry something of ours, and how many unbound ones name one of our schedulers."""
    while True:
        held: list[GatedPod] = []
        waiting = 0
        try:
            for pod in _listed(cluster, PODS, _UNBOUND):
                found = _held(pod)
                held += [found] if found.gated or found.promised is not None else []
                waiting += pod["spec"].get("schedulerName") in schedulers and _pending(pod)
        except ClusterError as error:
            if error.status != _EXPIRED:
                raise
        else:
            return tuple(held), waiting


def _listed(cluster: Cluster, path: str, selector: tuple[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list, page by page. Raises ClusterError, 410 where the next page has expired."""
    token = ""
    while True:
        page = cluster.read(path, [selector, ("limit", str(_PAGE)), *([("continue", token)] if token else [])])
        yield from page.get("items") or ()
        token = page["metadata"].get("continue", "")
        if not token:
            return


def _held(pod: Mapping[str, Any]) -> GatedPod:
    metadata = pod["metadata"]
    promised = (metadata.get("annotations") or {}).get(PROMISED_ANNOTATION)
    return GatedPod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        gated=any(gate["name"] == HOLD_GATE for gate in pod["spec"].get("schedulingGates") or ()),
        promised=promised,
        nominated=bool(promised) and pod.get("status", {}).get("nominatedNodeName") == promised,
    )


def _pending(pod: Mapping[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") == "Pending" and "deletionTimestamp" not in pod["metadata"]

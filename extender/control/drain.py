"""Drain, the way out: remove our admission policies first, then everything of ours on pods that wait.

Each write can be repeated, and a leader may still release pods at the same time: whoever comes second finds nothing
left to do. A pod that gave its requests up gets them back first (`drain_opportunistic`). On one pod the gate goes
before all else of ours, so that the leader leaves it alone. The annotation goes last: by it an interrupted run finds
the nomination again. Gates and nominations of others are never touched.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from extender.cluster.model import HOLD_GATE, PROMISED_ANNOTATION, Pod
from extender.control.drain_opportunistic import WayOut, demoted, is_gone
from extender.errors import AnswerTooLarge, ClusterError

POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
PODS = "/api/v1/pods"

SETTLE_SECONDS = 5.0
"""API servers apply a policy for a second or two after its deletion; each of several learns of it by itself."""

_OURS = ("labelSelector", "app.kubernetes.io/name=dovetail")
_UNBOUND = ("fieldSelector", "spec.nodeName=")
_BOUND = ("fieldSelector", "spec.nodeName!=")
_PAGE = 500
_WRITERS = 8
_ROUNDS = 30
_FRUITLESS_ROUNDS = 3
_PAUSE_SECONDS = 1.0

_EXPIRED = 410

_Pod = TypeVar("_Pod")

Show = Callable[[int, int], None]
"""Shows how many pods of a round are done, of how many."""


class Cluster(Protocol):
    """What draining needs of the API server. Every failure is a ClusterError, with the status where it answered."""

    def read(self, path: str, params: Sequence[tuple[str, str]] = ()) -> Any:  # noqa: ANN401 - whatever JSON is there
        """Return an object or a list."""

    def delete(self, path: str) -> None:
        """Delete an object."""


class GateRemover(Protocol):
    """What takes what is ours off a pod. Raises ClusterError, with the status where the API server refused."""

    def remove_gate(self, namespace: str, name: str) -> None:
        """Remove our gate, and leave the gates of others."""

    def remove_nomination(self, namespace: str, name: str, node: str) -> None:
        """Remove nomination and annotation; refused unless both still name this node."""

    def remove_annotation(self, namespace: str, name: str) -> None:
        """Remove the annotation that names the node we nominated."""


@dataclass(frozen=True, slots=True)
class GatedPod:
    """A pod that waits with something of ours on it: the gate, our annotation, a nomination that the two agree on.

    `demoted` is the pod where it has given its requests up: that is ours too.
    """

    namespace: str
    name: str
    gated: bool
    promised: str | None
    nominated: bool
    demoted: Pod | None = None

    @property
    def full_name(self) -> str:
        """Its namespace and name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class SeenOfOurs:
    """What there is of ours now: names of policies and bindings, pods, and how many pods wait for our schedulers.

    `opportunistic` pods run and have given their requests up.
    """

    policies: tuple[str, ...]
    bindings: tuple[str, ...]
    held: tuple[GatedPod, ...]
    waiting: int
    opportunistic: int


@dataclass(frozen=True, slots=True)
class Drained:
    """What was removed; `left` are the pods where something of ours still is, with the reason.

    `taken_back` running pods were opportunistic, and were promoted or evicted. Those `without_requests` go on as they
    are, for a reason: they cannot have theirs. `since` is how many pods came with our gate after the policies had gone.

    `waiting` pods are not bound and name one of our schedulers: if that goes away too, nobody places them.
    """

    policies: tuple[str, ...]
    bindings: tuple[str, ...]
    gates: int
    nominations: int
    left: Mapping[str, str]
    waiting: int
    taken_back: int = 0
    without_requests: Mapping[str, str] = field(default_factory=dict)
    since: int = 0


def look(cluster: Cluster, schedulers: frozenset[str]) -> SeenOfOurs:
    """Return what `drain` would remove, and change nothing."""
    held, waiting = _waiting_pods(cluster, schedulers)
    return SeenOfOurs(
        _named(cluster, POLICIES) or (), _named(cluster, BINDINGS) or (), held, waiting, len(_running_demoted(cluster))
    )


def drain(
    cluster: Cluster,
    gates: GateRemover,
    schedulers: frozenset[str],
    way_out: WayOut,
    *,
    show: Show = lambda _done, _total: None,
    pause: Callable[[float], None] = time.sleep,
) -> Drained:
    """Remove everything of ours, and look again until there is nothing left; `schedulers` are those that we came with.

    Ends with pods in `left` where writes are refused again and again. Pods whose templates carry the gate may come for
    ever: those that come once the policies are gone are counted, and keep it from no end.
    Raises ClusterError where the API server cannot be reached, or refuses to let us look.
    """
    # 1. Remove our admission policies, so that no new pod gets the gate.
    bindings, policies = _removed(cluster, BINDINGS), _removed(cluster, POLICIES)
    settled = bindings is None and policies is None
    gate_count = nomination_count = fruitless_rounds = since = 0
    problems: dict[str, str] = {}
    without_requests: dict[str, str] = {}
    held, waiting = _waiting_pods(cluster, schedulers)
    names_at_start = {pod.full_name for pod in held}
    for _ in range(_ROUNDS):
        # At each turn: `held` are those of the pods at the start that carry something of ours now, and `since` is how
        # many others do; `problems` is of the last round.
        if not held and settled:
            break
        # 2. Take off each pod what is ours.
        outcomes = _release_all(gates, held, show, way_out)
        gate_count += sum(outcome.gate for outcome in outcomes)
        nomination_count += sum(outcome.nomination for outcome in outcomes)
        problems = {outcome.pod.full_name: outcome.problem for outcome in outcomes if outcome.problem}
        without_requests |= {outcome.pod.full_name: outcome.without for outcome in outcomes if outcome.without}
        # 3. Give up after some rounds in which every write was refused.
        fruitless_rounds = fruitless_rounds + 1 if problems and len(problems) == len(outcomes) else 0
        if fruitless_rounds == _FRUITLESS_ROUNDS:
            break
        # 4. Look again, once every API server knows that the policies are gone.
        if not settled:
            pause(SETTLE_SECONDS)
        elif problems:
            pause(_PAUSE_SECONDS)
        carrying, waiting = _waiting_pods(cluster, schedulers)
        if not settled:
            names_at_start = {pod.full_name for pod in carrying}
        settled = True
        held = tuple(pod for pod in carrying if pod.full_name in names_at_start)
        since = len(carrying) - len(held)
    # 5. Promote or evict those that run on what others reserved.
    taken_back, refused, unchanged = _end_running(cluster, way_out)
    left = {pod.full_name: problems[pod.full_name] for pod in held if pod.full_name in problems}
    return Drained(
        policies=policies or (),
        bindings=bindings or (),
        gates=gate_count,
        nominations=nomination_count,
        left=left | refused,
        waiting=waiting,
        taken_back=taken_back,
        without_requests=without_requests | unchanged,
        since=since + len(held) - len(left),
    )


def _end_running(cluster: Cluster, way_out: WayOut) -> tuple[int, dict[str, str], dict[str, str]]:
    """Take back the opportunistic pods that run; return how many, who is left and who goes on as it is, and why."""
    count, refused, unchanged = 0, dict[str, str](), dict[str, str]()
    for pod in _running_demoted(cluster):
        try:
            if reason := way_out.end(pod):
                unchanged[pod.full_name] = reason
            else:
                count += 1
        except ClusterError as error:
            if not is_gone(error):
                refused[pod.full_name] = str(error)
    return count, refused, unchanged


def _running_demoted(cluster: Cluster) -> list[Pod]:
    return [pod for pod in _whole_list(cluster, _BOUND, demoted) if pod is not None]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Whether gate and nomination of one pod were removed, and what the API server said against it.

    `without` says why it did not get its requests back.
    """

    pod: GatedPod
    gate: bool
    nomination: bool
    problem: str
    without: str


def _release_all(gates: GateRemover, held: Sequence[GatedPod], show: Show, way_out: WayOut) -> list[_Outcome]:
    outcomes: list[_Outcome] = []
    with ThreadPoolExecutor(_WRITERS) as writers:
        for outcome in writers.map(lambda pod: _release(gates, pod, way_out), held):
            outcomes.append(outcome)
            show(len(outcomes), len(held))
    return outcomes


def _release(gates: GateRemover, pod: GatedPod, way_out: WayOut) -> _Outcome:
    """Take what is ours off one pod; a write that the API server refuses is left to the next round."""
    gate = nomination = False
    without = ""
    try:
        if pod.demoted is not None:
            without = way_out.give_back(pod.demoted)
        if pod.gated:
            gates.remove_gate(pod.namespace, pod.name)
            gate = True
        if pod.promised is not None and pod.nominated:
            gates.remove_nomination(pod.namespace, pod.name, pod.promised)
            nomination = True
        elif pod.promised is not None:
            gates.remove_annotation(pod.namespace, pod.name)
    except ClusterError as error:
        if error.status is None:
            raise
        problem = "" if error.is_not_found else str(error)
        return _Outcome(pod, gate, nomination, problem, without)
    return _Outcome(pod, gate, nomination, "", without)


def _removed(cluster: Cluster, path: str) -> tuple[str, ...] | None:
    """Delete what carries our label there; return the names, None where the API server has no such kind."""
    names = _named(cluster, path)
    for name in names or ():
        try:
            cluster.delete(f"{path}/{quote(name)}")
        except ClusterError as error:
            if not error.is_not_found:
                raise
    return names


def _named(cluster: Cluster, path: str) -> tuple[str, ...] | None:
    try:
        return tuple(item["metadata"]["name"] for item in _listed(cluster, path, _OURS))
    except ClusterError as error:
        if not error.is_not_found:
            raise
        return None


def _waiting_pods(cluster: Cluster, schedulers: frozenset[str]) -> tuple[tuple[GatedPod, ...], int]:
    """Return the unbound pods that carry something of ours, and how many unbound ones name one of our schedulers."""

    def read(pod: Mapping[str, Any]) -> tuple[GatedPod, bool]:
        return _gated_pod(pod), pod["spec"].get("schedulerName") in schedulers and _pending(pod)

    pods = _whole_list(cluster, _UNBOUND, read)
    held = tuple(pod for pod, _ in pods if pod.gated or pod.promised is not None or pod.demoted is not None)
    return held, sum(waits for _, waits in pods)


def _whole_list(cluster: Cluster, selector: tuple[str, str], read: Callable[[Mapping[str, Any]], _Pod]) -> list[_Pod]:
    """Return what is read of the pods of a list, which begins again where it expires meanwhile.

    No more than one page of whole pods is in memory.
    """
    while True:
        try:
            return [read(pod) for pod in _listed(cluster, PODS, selector)]
        except ClusterError as error:
            if error.status != _EXPIRED:
                raise


def _listed(cluster: Cluster, path: str, selector: tuple[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list, page by page. Raises ClusterError, 410 where the next page has expired."""
    token, limit = "", _PAGE
    while True:
        # At each turn: `limit` is how many objects a page may have; one that is too large is asked for again in parts.
        try:
            page = cluster.read(path, [selector, ("limit", str(limit)), *([("continue", token)] if token else [])])
        except AnswerTooLarge:
            if limit == 1:
                raise
            limit //= 4
            continue
        yield from page.get("items") or ()
        token = page["metadata"].get("continue", "")
        if not token:
            return


def _gated_pod(pod: Mapping[str, Any]) -> GatedPod:
    metadata = pod["metadata"]
    promised = (metadata.get("annotations") or {}).get(PROMISED_ANNOTATION)
    return GatedPod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        gated=any(gate["name"] == HOLD_GATE for gate in pod["spec"].get("schedulingGates") or ()),
        promised=promised,
        nominated=bool(promised) and pod.get("status", {}).get("nominatedNodeName") == promised,
        demoted=demoted(pod),
    )


def _pending(pod: Mapping[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") == "Pending" and "deletionTimestamp" not in pod["metadata"]

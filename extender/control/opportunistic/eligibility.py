"""Whether a waiting pod may be made opportunistic, by its spec as the API server has it, and if not why not.

Whatever a resize could not undo, or the pod or its owner could notice, is a reason. Reasons are of a fixed list, so
that they can be counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from extender.cluster.pods.limits import LONGEST_NUMBER
from extender.cluster.pods.opportunistic import ALLOWED, OPPORTUNISTIC_ANNOTATION, REGULAR_REQUESTS_ANNOTATION
from extender.cluster.resources import CPU, MEMORY
from extender.control.opportunistic.demotion import Document, containers_of, has_limit, items, part, requests_of
from extender.errors import BadAnnotation

RESIZES_ALL = (1, 36)
"""The first version of Kubernetes that resizes init containers' and pods' own requests to 0."""

RUN_TO_COMPLETION = frozenset({"Job"})
"""Kinds of owners whose pods end by themselves, and that make another one where a pod is evicted."""

_BACKOFF_LIMIT = 6
"""That of a Job that does not say."""

_IGNORE, _COUNT = "Ignore", "Count"
_FAILS = ("FailIndex", "FailJob")
_ACTIONS = (_IGNORE, _COUNT, *_FAILS)
"""What a rule of a podFailurePolicy may do, the worse the later."""

_WITHOUT_BUDGET = {_IGNORE: None} | dict.fromkeys(_FAILS, 0)
"""How many pods may be exposed whatever the backoffLimit."""

_ENDED_BY_SIGNAL = frozenset({137, 143})
"""The exit codes of containers that were ended by SIGKILL and SIGTERM, as those of evicted pods are."""

_FAILURES_OF_INDEX = "batch.kubernetes.io/job-index-failure-count"


class Ineligible(Enum):
    """Why a pod stays regular."""

    NOT_WAITING = "it has a node already, or is being deleted"
    ALREADY = "it is opportunistic, or is being made so"
    OPTED_OUT = "its user, queue or namespace keeps it regular"
    GUARANTEED = "its QoS class is Guaranteed, and has to stay so"
    NOTHING_TO_GIVE = "it requests no CPU and no memory"
    GANG = "it starts together with others"
    NOT_RUN_TO_COMPLETION = "its owner does not run to completion, and nobody has opted in"
    AUTOSCALED = "an autoscaler sizes its owner by what it requests"
    RESTARTS = "a resize would restart one of its containers"
    HOST_PORTS = "it has a port of its node, which a regular pod may need"
    OVERHEAD = "its RuntimeClass has an overhead, which no resize changes"
    DOWNWARD_API = "it reads its own requests or limits"
    WINDOWS = "it runs on Windows, where there is no resize"
    NOT_RESIZABLE = "what it requests cannot be resized to 0: init containers before 1.36, or pod-level without a limit"
    NOT_WRITABLE = "what it requests is too long or too large to be written down"
    NO_EVICTION_LEFT = "its Job might fail by its eviction: backoffLimit or podFailurePolicy leaves no room"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a pod's own spec does not say.

    `opted_in` and `opted_out` are what its namespace or queue says. `evictions_left` says how many more pods of
    its Job may be evicted (the function of this name), None: any number. `version` is that of Kubernetes.
    """

    version: tuple[int, int] = RESIZES_ALL
    opted_in: bool = False
    opted_out: bool = False
    gang: bool = False
    autoscaled: bool = False
    evictions_left: int | None = None


def why_not(pod: Document, around: Surroundings) -> Ineligible | None:
    """Return why a pod may not be made opportunistic, the first reason of the list; None where it may.

    What the pod chooses comes before what its namespace or queue does. A pod that nobody would make again has to choose
    it itself.
    """
    meta, spec = part(pod, "metadata"), part(pod, "spec")
    annotations, requests, (owner, _) = part(meta, "annotations"), requests_of(pod), controller_of(pod)
    own = annotations.get(OPPORTUNISTIC_ANNOTATION)
    opted_out = around.opted_out if own is None else own != ALLOWED
    opted_in = bool(owner) and around.opted_in if own is None else own == ALLOWED
    reasons = {
        Ineligible.NOT_WAITING: bool(spec.get("nodeName") or meta.get("deletionTimestamp")),
        Ineligible.ALREADY: REGULAR_REQUESTS_ANNOTATION in annotations,
        Ineligible.OPTED_OUT: opted_out,
        Ineligible.GUARANTEED: part(pod, "status").get("qosClass") == "Guaranteed",
        Ineligible.NOTHING_TO_GIVE: not any(requests.parts),
        Ineligible.GANG: around.gang,
        Ineligible.NOT_RUN_TO_COMPLETION: not (opted_in or owner in RUN_TO_COMPLETION),
        Ineligible.AUTOSCALED: around.autoscaled,
        Ineligible.RESTARTS: any(map(_restarts, containers_of(pod))),
        Ineligible.HOST_PORTS: _has_host_ports(pod),
        Ineligible.OVERHEAD: any(name in part(spec, "overhead") for name in (CPU, MEMORY)),
        Ineligible.DOWNWARD_API: not _own_resources(has_limit(pod)).isdisjoint(_read_by_itself(pod)),
        Ineligible.WINDOWS: _is_windows(spec),
        Ineligible.NOT_RESIZABLE: _needs_later_version(pod, around.version),
        Ineligible.NOT_WRITABLE: any(requests.parts) and not _is_writable(pod),
        Ineligible.NO_EVICTION_LEFT: around.evictions_left is not None and around.evictions_left <= 0,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def evictions_left(job: Document, pod: Document, *, exposed: int) -> int | None:
    """Return how many more pods of a Job may be exposed to eviction; None: any number, as they do not count as failed.

    0 where the Job's `podFailurePolicy` has it fail, or an index of it, by a single eviction.

    `exposed` are those that are opportunistic now. One of each limit stays for pods that fail by themselves. Where the
    Job has a limit per index, that of the `pod`'s index counts as well.
    """
    spec = part(job, "spec")
    worst = _worst_of_eviction(spec)
    if worst in _WITHOUT_BUDGET:
        return _WITHOUT_BUDGET[worst]
    left = int(spec.get("backoffLimit", _BACKOFF_LIMIT)) - int(part(job, "status").get("failed") or 0) - exposed
    if "backoffLimitPerIndex" in spec:
        left = min(left, int(spec["backoffLimitPerIndex"]) - _failures_of_index(pod))  # one pod at a time has an index
    return max(left - 1, 0)


def _failures_of_index(pod: Document) -> int:
    """Return how many pods of a pod's index have failed; more than any limit where its annotation is no number."""
    text = part(part(pod, "metadata"), "annotations").get(_FAILURES_OF_INDEX, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else 2**31


def controller_of(document: Document) -> tuple[str, str]:
    """Return the kind and the name of an object's controlling owner, empty where it has none."""
    owners = items(part(document, "metadata"), "ownerReferences")
    controllers = ((owner.get("kind", ""), owner.get("name", "")) for owner in owners if owner.get("controller"))
    return next(controllers, ("", ""))


def _worst_of_eviction(spec: Document) -> str:
    """Return the worst that a Job may do about an evicted pod: the action of its first rule that may hold.

    The rule about DisruptionTarget does hold, and ends the search. A rule about exit codes may hold, as those of an
    evicted pod may be any; that it fails the Job is taken for sure where it names what a signal leaves.
    """
    worst = _IGNORE
    for rule in items(part(spec, "podFailurePolicy"), "rules"):
        action = rule.get("action", _COUNT)
        action = action if action in _ACTIONS else _ACTIONS[-1]  # of a later Kubernetes
        if "onPodConditions" in rule:
            if any(map(_is_disruption, items(rule, "onPodConditions"))):
                return _worse(worst, action)
        elif action in _FAILS and not _names_signal(part(rule, "onExitCodes")):
            worst = _worse(worst, _COUNT)
        else:
            worst = _worse(worst, action)
    return _worse(worst, _COUNT)


def _worse(one: str, other: str) -> str:
    return max(one, other, key=_ACTIONS.index)


def _names_signal(codes: Document) -> bool:
    """Say whether a rule's exit codes are among those that a signal leaves; `NotIn` is about all codes but its own."""
    values = frozenset(codes.get("values") or ())
    matched = _ENDED_BY_SIGNAL & values if codes.get("operator") == "In" else _ENDED_BY_SIGNAL - values
    return bool(matched)


def _is_disruption(pattern: Document) -> bool:
    return pattern.get("type") == "DisruptionTarget" and pattern.get("status", "True") == "True"


def _restarts(container: Document) -> bool:
    policies = items(container, "resizePolicy")
    return any(policy.get("restartPolicy") == "RestartContainer" for policy in policies)


def _has_host_ports(pod: Document) -> bool:
    on_host = bool(part(pod, "spec").get("hostNetwork"))
    return any(
        on_host or port.get("hostPort") for container in containers_of(pod) for port in items(container, "ports")
    )


def _own_resources(has_limit: bool) -> frozenset[str]:
    """Return the names of what a pod could see change."""
    requests = {"requests.cpu", "requests.memory"}
    return frozenset(requests if has_limit else requests | {"limits.memory"})


def _read_by_itself(pod: Document) -> Iterator[str]:
    """Yield the resources of its own that a pod reads, in its environment and in its volumes."""
    for container in containers_of(pod):
        for variable in items(container, "env"):
            yield part(part(variable, "valueFrom"), "resourceFieldRef").get("resource", "")
    for volume in items(part(pod, "spec"), "volumes"):
        projected = [part(source, "downwardAPI") for source in items(part(volume, "projected"), "sources")]
        for source in (part(volume, "downwardAPI"), *projected):
            for file in items(source, "items"):
                yield part(file, "resourceFieldRef").get("resource", "")


def _is_windows(spec: Document) -> bool:
    return "windows" in (part(spec, "os").get("name"), part(spec, "nodeSelector").get("kubernetes.io/os"))


def _needs_later_version(pod: Document, version: tuple[int, int]) -> bool:
    """Say whether requests of a pod cannot become 0: those of the pod as a whole do with a limit of its own alone."""
    requests = requests_of(pod)
    if version < RESIZES_ALL and (requests.init_containers or requests.pod):
        return True
    return bool(requests.pod) and not has_limit(pod)


def _is_writable(pod: Document) -> bool:
    try:
        requests_of(pod).written()
    except BadAnnotation:
        return False
    return True

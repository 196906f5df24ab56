"""kube-scheduler's extender protocol, v1: its JSON <-> our structs. Pure.

The Go structs carry no JSON tags: keys are Go's field names, empty pointers arrive as null.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

import msgspec
import numpy as np

from extender.adapters.kube.nodes import NodeObject
from extender.adapters.kube.objects import PodObject
from extender.arrays import Counts, Rows
from extender.cluster.pods.limits import LONGEST_NAME
from extender.errors import BadRequest

_LONGEST_UID = 64
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _NodeItems(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _Args(msgspec.Struct, rename="pascal"):
    pod: PodObject | None = None
    nodes: _NodeItems | None = None
    node_names: list[str] | None = None


class MetaPod(msgspec.Struct):
    """MetaPod."""

    uid: str = msgspec.field(name="UID")


class MetaVictims(msgspec.Struct):
    """MetaVictims: who would be evicted from one node."""

    pods: Sequence[MetaPod] | None = msgspec.field(name="Pods", default=None)
    num_pdb_violations: _Count = msgspec.field(name="NumPDBViolations", default=0)


class _VictimMeta(msgspec.Struct):
    uid: str


class _Victim(msgspec.Struct):
    metadata: _VictimMeta


class _Victims(msgspec.Struct):
    pods: list[_Victim] | None = msgspec.field(name="Pods", default=None)
    num_pdb_violations: _Count = msgspec.field(name="NumPDBViolations", default=0)

    def meta(self) -> MetaVictims:
        return MetaVictims([MetaPod(pod.metadata.uid) for pod in self.pods or ()], self.num_pdb_violations)


class _PreemptionArgs(msgspec.Struct, rename="pascal"):
    pod: PodObject | None = None
    node_name_to_victims: dict[str, _Victims] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


class FilterReply(msgspec.Struct, rename="pascal"):
    """ExtenderFilterResult, with `nodes` or `node_names`: with neither, kube-scheduler rejects every node."""

    nodes: Mapping[str, Sequence[msgspec.Raw]] | None = None
    node_names: Sequence[str] | None = None
    failed_nodes: Mapping[str, str] | None = None
    failed_and_unresolvable_nodes: Mapping[str, str] | None = None
    error: str = ""


class Request(msgspec.Struct):
    """A filter or prioritize request: the pod, the nodes' names, and the nodes as they came where they came whole."""

    pod: PodObject
    names: Sequence[str]
    whole: Sequence[msgspec.Raw] | None = None


class PreemptRequest(Request):
    """A preempt request: the names are of nodes where pods would be evicted, and `victims` says which, by node."""

    victims: Mapping[str, MetaVictims] = {}


class PreemptReply(msgspec.Struct, rename="pascal"):
    """ExtenderPreemptionResult: the nodes where the evictions would help."""

    node_name_to_meta_victims: Mapping[str, MetaVictims]


_ARGS = msgspec.json.Decoder(_Args)
_PREEMPTION_ARGS = msgspec.json.Decoder(_PreemptionArgs)
_NODE = msgspec.json.Decoder(NodeObject)


def decode(body: bytes) -> Request:
    """Return the request. Raises BadRequest, which says where the body is wrong and what is accepted."""
    with _refused("ExtenderArgs"):
        args = _ARGS.decode(body)
        if args.pod is None:
            raise BadRequest("Pod is missing; accepted: ExtenderArgs with Pod, and Nodes or NodeNames")
        _check(args.pod)
        if args.node_names is not None:
            return Request(args.pod, args.node_names)
        if args.nodes is None:
            raise BadRequest("Nodes and NodeNames are both null; accepted: one of them")
        whole = args.nodes.items or []
        str(body, "utf-8")  # whole nodes go back as they came, so bytes that are no text would break the reply
        return Request(args.pod, [_NODE.decode(raw).metadata.name for raw in whole], whole)


def decode_preemption(body: bytes) -> PreemptRequest:
    """Return the preempt request, its victims by UID in either form. Raises BadRequest."""
    with _refused("ExtenderPreemptionArgs"):
        args = _PREEMPTION_ARGS.decode(body)
    victims = args.node_name_to_meta_victims
    if victims is None and args.node_name_to_victims is not None:
        victims = {name: whole.meta() for name, whole in args.node_name_to_victims.items()}
    if args.pod is None or victims is None:
        missing = "Pod is missing" if args.pod is None else "NodeNameToVictims and NodeNameToMetaVictims are both null"
        raise BadRequest(f"{missing}; accepted: ExtenderPreemptionArgs with Pod, and one of the two maps")
    _check(args.pod)
    return PreemptRequest(args.pod, list(victims), victims=victims)


@contextmanager
def _refused(kind: str) -> Iterator[None]:
    """Raise BadRequest where a body cannot be decoded, with the place."""
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body is not {kind}: {error}") from None
    except RecursionError:
        raise BadRequest(f"the body is nested too deeply; accepted: {kind} as kube-scheduler sends it") from None


def _check(pod: PodObject) -> None:
    """Raise BadRequest where a pod states what no API server would let through."""
    meta = pod.metadata
    for name, text, most in (
        ("uid", meta.uid, _LONGEST_UID),
        ("name", meta.name, LONGEST_NAME),
        ("namespace", meta.namespace, LONGEST_NAME),
    ):
        if len(text) > most:
            raise BadRequest(f"Pod.metadata.{name} has {len(text)} characters; accepted: at most {most}")
    if not -(2**31) <= (pod.spec.priority or 0) < 2**31:
        raise BadRequest("Pod.spec.priority is beyond 32 bits; accepted: what an API server lets through")


def node_object(raw: msgspec.Raw) -> NodeObject:
    """Return one node that came whole."""
    return _NODE.decode(raw)


class ScoreTable:
    """The prioritize reply, from ready-made pieces: one for each node and score, made once for a set of nodes."""

    def __init__(self, names: Sequence[str]) -> None:
        hosts = [b'{"Host":' + encode(name) + b',"Score":' for name in names]
        scores = [b"%d}" % score for score in range(11)]
        self._pieces = np.array([host + score for host in hosts for score in scores], dtype=object).reshape(-1, 11)

    def encode(self, rows: Rows, scores: Counts, unknown: Sequence[str] = ()) -> bytes:
        """Return the scores [K] of these nodes [K] as a HostPriorityList; unknown nodes get 0."""
        pieces = self._pieces[rows, scores].tolist()
        pieces += [encode({"Host": name, "Score": 0}) for name in unknown]
        return b"[" + b",".join(pieces) + b"]"


def encode(reply: object) -> bytes:
    """Return a reply as JSON."""
    return msgspec.json.encode(reply)


def require_once(names: Sequence[str]) -> None:
    """Raise BadRequest if a node is named more than once."""
    if len(set(names)) != len(names):
        counts = Counter(names)
        twice = sorted(name for name, count in counts.items() if count > 1)
        raise BadRequest(f"nodes are named more than once: {', '.join(twice[:5])}; accepted: each node once")

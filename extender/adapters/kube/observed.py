"""Pods as a recording reads them: what the service reads, when each was bound and ended, and what it asks of others."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import msgspec

from extender.adapters.kube.decoding import PodReader, epoch
from extender.adapters.kube.peers import PeersMeta, PeersSpec, peers_of, unwritten_of
from extender.adapters.kube.watching import Resource, pods
from extender.cluster.peers import ALONE, Peers
from extender.cluster.recording.observed import Moments, PodObserved, PodsObserved


class _Terminated(msgspec.Struct, rename="camel"):
    finished_at: str | None = None


class _State(msgspec.Struct):
    terminated: _Terminated | None = None


class _Container(msgspec.Struct):
    state: _State | None = None


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _Status(msgspec.Struct, rename="camel"):
    conditions: list[_Condition] | None = None
    container_statuses: list[_Container] | None = None


class _Observed(msgspec.Struct):
    """A pod, of which only that is read which the service does not need."""

    metadata: PeersMeta = msgspec.field(default_factory=PeersMeta)
    spec: PeersSpec = msgspec.field(default_factory=PeersSpec)
    status: _Status | None = None


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")
_MOST_KEPT = 10_000


class _Kept:
    """Labels and peers that many pods have alike, each held once; the oldest are forgotten where there are too many."""

    def __init__(self) -> None:
        self._labels: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}
        self._peers: dict[Peers, Peers] = {ALONE: ALONE}

    def labels(self, labels: Mapping[str, str] | None) -> Mapping[str, str]:
        return _once(self._labels, tuple(sorted((labels or {}).items())), labels or {})

    def peers(self, peers: Peers) -> Peers:
        return _once(self._peers, peers, peers)


def observed_pods() -> Resource:
    """Return how pods are read with their moments."""
    read, more, kept = PodReader().read, msgspec.json.Decoder(_Observed).decode, _Kept()

    def listed(raws: Iterable[msgspec.Raw]) -> PodsObserved:
        both = [(read(raw), _moments(more(raw), kept)) for raw in raws]
        return PodsObserved([pod for pod, _ in both], [moments for _, moments in both])

    return Resource(
        name="pods",
        path=pods().path,
        listed=listed,
        seen=lambda raw: PodObserved(read(raw), _moments(more(raw), kept)),
        gone=pods().gone,
    )


def _moments(pod: _Observed, kept: _Kept) -> Moments:
    status = pod.status or _Status()
    since = {one.type: epoch(one.last_transition_time) for one in status.conditions or () if one.status == "True"}
    ends = (
        epoch(container.state.terminated.finished_at)
        for container in status.container_statuses or ()
        if container.state is not None and container.state.terminated is not None
    )
    return Moments(
        bound=since.get("PodScheduled"),
        ended=max((end for end in ends if end is not None), default=None),
        disrupted=since.get("DisruptionTarget"),
        unwritten=unwritten_of(pod.spec),
        labels=kept.labels(pod.metadata.labels),
        peers=kept.peers(peers_of(pod.metadata, pod.spec)),
    )


def _once(kept: dict[_Key, _Value], key: _Key, value: _Value) -> _Value:
    if key not in kept and len(kept) >= _MOST_KEPT:
        del kept[next(iter(kept))]
    return kept.setdefault(key, value)

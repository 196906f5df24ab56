"""Pods as a recording reads them: what the service reads, and when each was bound and ended."""

from collections.abc import Iterable

import msgspec

from extender.adapters.kube.decoding import PodReader, epoch
from extender.adapters.kube.watching import Resource, pods
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


class _Timed(msgspec.Struct):
    """A pod, of which only the times are read that the service does not need."""

    status: _Status | None = None


def observed_pods() -> Resource:
    """Return how pods are read with their moments."""
    read, times = PodReader().read, msgspec.json.Decoder(_Timed).decode

    def listed(raws: Iterable[msgspec.Raw]) -> PodsObserved:
        both = [(read(raw), _moments(times(raw))) for raw in raws]
        return PodsObserved([pod for pod, _ in both], [moments for _, moments in both])

    return Resource(
        name="pods",
        path=pods().path,
        listed=listed,
        seen=lambda raw: PodObserved(read(raw), _moments(times(raw))),
        gone=pods().gone,
    )


def _moments(pod: _Timed) -> Moments:
    status = pod.status or _Status()
    bound = (one for one in status.conditions or () if (one.type, one.status) == ("PodScheduled", "True"))
    ends = (
        epoch(container.state.terminated.finished_at)
        for container in status.container_statuses or ()
        if container.state is not None and container.state.terminated is not None
    )
    return Moments(
        bound=next((epoch(one.last_transition_time) for one in bound), None),
        ended=max((end for end in ends if end is not None), default=None),
    )

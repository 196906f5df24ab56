"""Pods as a recording reads them: what the service reads, when each was bound and ended, and what else binds it."""

from collections.abc import Iterable

import msgspec

from extender.adapters.kube.decoding import PodReader, epoch
from extender.adapters.kube.objects import Affinity, ContainerPort, SpreadConstraint, VolumeSource
from extender.adapters.kube.watching import Resource, pods
from extender.cluster.recording.lines import HOST_PORTS, POD_AFFINITY, SPREADING, VOLUMES
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


class _Ports(msgspec.Struct):
    ports: list[ContainerPort] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    affinity: Affinity | None = None
    containers: list[_Ports] | None = None
    topology_spread_constraints: list[SpreadConstraint] | None = None
    volumes: list[VolumeSource] | None = None


class _Observed(msgspec.Struct):
    """A pod, of which only that is read which the service does not need."""

    spec: _Spec | None = None
    status: _Status | None = None


def observed_pods() -> Resource:
    """Return how pods are read with their moments."""
    read, times = PodReader().read, msgspec.json.Decoder(_Observed).decode

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


def _moments(pod: _Observed) -> Moments:
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
        unwritten=_unwritten(pod.spec or _Spec()),
    )


def _unwritten(spec: _Spec) -> tuple[str, ...]:
    """Return which hard constraints a pod has besides those that a recording holds."""
    affinity = spec.affinity or Affinity()
    towards_and_away = (affinity.pod_affinity, affinity.pod_anti_affinity)
    ports = (port for container in spec.containers or () for port in container.ports or ())
    spreads = spec.topology_spread_constraints or ()
    there = (
        (HOST_PORTS, any(port.host_port for port in ports)),
        (POD_AFFINITY, any(one is not None and one.required for one in towards_and_away)),
        (SPREADING, any(one.when_unsatisfiable == "DoNotSchedule" for one in spreads)),
        (VOLUMES, any(one.persistent_volume_claim or one.ephemeral for one in spec.volumes or ())),
    )
    return tuple(name for name, is_there in there if is_there)

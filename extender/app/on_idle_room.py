"""Wires pods on idle room into `control`: who resizes, starts, promotes and evicts them, where settings say so."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from prometheus_client import CollectorRegistry

from extender.adapters.kube.api import Api
from extender.adapters.kube.resizing import PodResources
from extender.adapters.metrics.opportunistic import OpportunisticMetrics
from extender.app.measuring import Measuring
from extender.app.ordering import policy_of
from extender.cluster.model import Pod
from extender.control.cluster_view import ClusterView
from extender.control.eviction_requests import EvictionRequests
from extender.control.opportunistic.demotion import Document
from extender.control.opportunistic.eligibility import Surroundings, evictions_left
from extender.control.opportunistic.exposure import Exposure
from extender.control.opportunistic.idle_room import Thresholds
from extender.control.opportunistic.promotion import Promoter
from extender.control.opportunistic.resizing import Resizer
from extender.control.opportunistic.second_pass import SecondPass, Terms
from extender.control.preemption.loop import Preemptor, Rates
from extender.control.preemption.loop import Terms as PreemptionTerms
from extender.control.preemption.overload import Limits
from extender.control.preemption.stays_off import StaysOff
from extender.settings import Settings
from extender.settings.sections import OpportunisticSettings


@dataclass(frozen=True, slots=True)
class OnIdleRoom:
    """The parts, in the order in which the loops call them."""

    resizer: Resizer
    second_pass: SecondPass
    promoter: Promoter
    preemptor: Preemptor


def on_idle_room(
    settings: Settings,
    api: Api,
    cluster: ClusterView,
    measuring: Measuring,
    requests: EvictionRequests,
    registry: CollectorRegistry,
) -> OnIdleRoom | None:
    """Return the parts; None where no pod is to run on idle room."""
    wanted = settings.opportunistic
    if not wanted.enabled:
        return None
    metrics, stays_off, pods = OpportunisticMetrics(registry), StaysOff(), PodResources(api)
    stale = settings.usage.stale_seconds
    limits = Limits.of(
        cpu=wanted.evict_at_cpu,
        io=wanted.evict_at_io,
        memory=wanted.evict_at_memory,
        samples=wanted.evict_after_samples,
    )
    terms, listeners = Terms(_thresholds(wanted, limits), stale), [metrics.note_preemption]
    if measuring.predicting is not None:
        measuring.predicting.follow(lambda: cluster.snapshot().layout, cluster.leads)
        terms = replace(terms, peaks=measuring.predicting.peaks)
        listeners.append(measuring.predicting.note_preemption)
    second_pass = SecondPass(cluster, policy_of(settings), measuring.usage, terms, stays_off)
    exposure = Exposure(cluster.backlog)

    def note_refused(pod: Pod, reason: str) -> None:
        exposure.leave(pod)
        second_pass.note_refused(pod, reason)

    version = cache(lambda: version_of(api.check_version()))
    resizer = Resizer(pods, lambda pod, found: _surroundings(pod, found, pods, exposure, version()), note_refused)
    preemptor = Preemptor(
        cluster,
        measuring.usage,
        requests,
        _All(listeners),
        PreemptionTerms(limits, Rates(in_all=wanted.evictions_per_minute), stale, wanted.dry_run),
        stays_off,
    )
    return OnIdleRoom(
        resizer, second_pass, Promoter(cluster, resizer, metrics.note_promotion, requests.asked), preemptor
    )


class _Note(Protocol):
    def __call__(self, victim: Pod, resource: str, *, dry_run: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class _All:
    """Tells all of these of an eviction."""

    listeners: Sequence[_Note]

    def note_preemption(self, victim: Pod, resource: str, *, dry_run: bool) -> None:
        """Note an eviction."""
        for note in self.listeners:
            note(victim, resource, dry_run=dry_run)


def _thresholds(wanted: OpportunisticSettings, limits: Limits) -> Thresholds:
    return Thresholds(None if wanted.threshold == "auto" else wanted.threshold, evict_at=limits.threshold)


def _surroundings(
    pod: Pod, found: Document, pods: PodResources, exposure: Exposure, version: tuple[int, int]
) -> Surroundings:
    """Return what a pod's own spec does not say; its Job is read."""
    left: int | None = None
    if pod.owner_kind == "Job":
        job = pods.job(pod.namespace, pod.owner_name)
        left = 0
        if job is not None:
            left = exposure.evictions_left(pod, lambda exposed: evictions_left(job, found, exposed=exposed))
    return Surroundings(version, gang=bool(pod.identity.group), evictions_left=left)


def version_of(text: str) -> tuple[int, int]:
    """Return the major and minor version of Kubernetes, of a text such as v1.36.3 or v1.34.4+rke2r1."""
    major, minor = text.removeprefix("v").split(".")[:2]
    return int(major), int(minor)

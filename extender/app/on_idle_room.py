"""Wires pods on idle room into `control`: who resizes, starts, promotes and evicts them, where settings say so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from prometheus_client import CollectorRegistry

from extender.adapters.kube.api import Api
from extender.adapters.kube.autoscalers import Autoscalers
from extender.adapters.kube.resizing import PodResizer
from extender.adapters.metrics.opportunistic import OpportunisticMetrics
from extender.app.measuring import Measuring
from extender.app.tuning import policy_of
from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import ALLOWED, NEVER
from extender.cluster.stays_off import StaysOff
from extender.control.cluster_view import ClusterView
from extender.control.eviction_requests import EvictionRequests
from extender.control.idle_room.room import Thresholds
from extender.control.opportunistic.demotion import Document
from extender.control.opportunistic.eligibility import Surroundings, controller_of, evictions_left
from extender.control.opportunistic.exposure import Exposure
from extender.control.opportunistic.promotion import Promoter
from extender.control.opportunistic.resizing import Resizer
from extender.control.opportunistic.second_pass import OpportunisticLimits, SecondPass
from extender.control.preemption.eviction_history import EvictionHistory
from extender.control.preemption.loop import PreemptionLimits, Preemptor
from extender.control.preemption.overload import Limits, Pressure
from extender.control.preemption.rates import Rates
from extender.control.preemption.regular_first import RegularFirst
from extender.control.preemption.starved import STARVED_TIMES
from extender.control.preemption.starved_pods import StarvedPods
from extender.explain.running_as import PROMOTION_REFUSED, STAYS_REGULAR
from extender.planner.caps import Caps
from extender.settings import Settings
from extender.settings.sections import OpportunisticSettings

_AUTOSCALER_SECONDS = 5.0
"""How long the API server may take to list autoscalers."""

_FLOOR_OF_AUTO = 0.8
"""With `threshold: auto`, evictions by pressure end where no more of the CPU is used: the usual threshold."""


@dataclass(frozen=True, slots=True)
class Reporting:
    """Where metrics go, and what makes an event of a pod, a reason and a message."""

    registry: CollectorRegistry
    say: Callable[[Pod, str, str], None]


@dataclass(frozen=True, slots=True)
class OnIdleRoom:
    """The parts, in the order in which the loops call them."""

    resizer: Resizer
    second_pass: SecondPass
    promoter: Promoter
    preemptor: Preemptor
    regular_first: RegularFirst


def on_idle_room(
    settings: Settings,
    api: Api,
    cluster: ClusterView,
    measuring: Measuring,
    requests: EvictionRequests,
    reporting: Reporting,
) -> OnIdleRoom | None:
    """Return the parts; None where no pod is to run on idle room."""
    wanted = settings.opportunistic
    if not wanted.enabled:
        return None
    metrics, pods = OpportunisticMetrics(reporting.registry), PodResizer(api)
    stays_off, history = StaysOff(), EvictionHistory()
    limits = _limits(wanted)
    caps = Caps(wanted.max_queue_share, wanted.max_job_share)
    terms, listeners = OpportunisticLimits(_thresholds(wanted, limits), caps), [metrics.note_preemption]
    if measuring.predicting is not None:
        measuring.predicting.follow(lambda: cluster.snapshot().layout, cluster.leads, terms.thresholds)
        terms = replace(terms, peaks=measuring.predicting.peaks)
        listeners.append(measuring.predicting.note_preemption)
    second_pass = SecondPass(cluster, policy_of(settings), measuring.usage, terms, stays_off, history)
    exposure = Exposure(cluster.backlog)

    def note_refused(pod: Pod, reason: str) -> None:
        exposure.leave(pod)
        second_pass.note_refused(pod)
        reporting.say(pod, STAYS_REGULAR, reason)

    version = cache(lambda: version_of(api.check_version()))
    around = _Around(pods, Autoscalers(api.apart(_AUTOSCALER_SECONDS)), exposure, version)
    resizer = Resizer(pods, around.of, note_refused)
    preemptor = Preemptor(
        cluster,
        measuring.usage,
        requests,
        _All(listeners),
        PreemptionLimits(limits, Rates(in_all=wanted.evictions_per_minute), wanted.dry_run),
        stays_off,
        history=history,
        starved=StarvedPods(second_pass.usual, STARVED_TIMES * wanted.evict_after_samples),
    )
    promoter = Promoter(
        cluster,
        resizer,
        metrics.note_promotion,
        requests.asked,
        note_refused=lambda pod, reason: reporting.say(pod, PROMOTION_REFUSED, reason),
    )
    regular_first = RegularFirst(cluster, preemptor, requests, promoter.under_way, dry_run=wanted.dry_run)
    return OnIdleRoom(resizer, second_pass, promoter, preemptor, regular_first)


def way_back(api: Api) -> Resizer:
    """Return what brings requests back where no pod is to run on idle room any more; it takes none away."""
    nobody = Surroundings(opted_out=True)
    return Resizer(PodResizer(api), lambda _pod, _found: nobody, lambda _pod, _reason: None)


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


def _limits(wanted: OpportunisticSettings) -> Limits:
    floor = _FLOOR_OF_AUTO if wanted.threshold == "auto" else wanted.threshold
    return Limits.of(
        cpu=wanted.evict_at_cpu,
        io=wanted.evict_at_io,
        memory=wanted.evict_at_memory,
        samples=wanted.evict_after_samples,
        pressure=Pressure(wanted.evict_at_pressure, floor) if wanted.by_pressure else None,
    )


@dataclass(frozen=True, slots=True)
class _Around:
    """Reads what a pod's own spec does not say; `version` says that of Kubernetes."""

    pods: PodResizer
    autoscalers: Autoscalers
    exposure: Exposure
    version: Callable[[], tuple[int, int]]

    def of(self, pod: Pod, document: Document) -> Surroundings:
        """Return it; the pod's owner is read, and whether an autoscaler is for that or its owner.

        Raises ClusterError where that cannot be read: nobody knows then that the pod is eligible.
        """
        owner: Document | None = None
        if pod.owner_kind == "Job":
            owner = self.pods.job(pod.namespace, pod.owner_name)
        elif pod.owner_kind == "ReplicaSet":
            owner = self.pods.replica_set(pod.namespace, pod.owner_name)
        owners = {(pod.owner_kind, pod.owner_name), controller_of(owner or {})}
        since = 0.0 if pod.owner_kind == "Job" else pod.created  # what makes Jobs is older than its pods
        autoscaled = self.autoscalers.any_of(pod.namespace, owners, since)
        left: int | None = None
        if pod.owner_kind == "Job":
            job, left = owner, 0
            if job is not None:
                left = self.exposure.evictions_left(pod, lambda exposed: evictions_left(job, document, exposed=exposed))
        return Surroundings(
            self.version(),
            opted_in=pod.tenant_choice == ALLOWED,
            opted_out=pod.tenant_choice == NEVER,
            gang=bool(pod.identity.group),
            autoscaled=autoscaled,
            evictions_left=left,
        )


def version_of(text: str) -> tuple[int, int]:
    """Return the major and minor version of Kubernetes, of a text such as v1.36.3 or v1.34.4+rke2r1."""
    major, minor = text.removeprefix("v").split(".")[:2]
    return int(major), int(minor)

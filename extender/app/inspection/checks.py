"""Gathers the facts that `dovetail doctor` needs, with whatever rights the caller has."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yaml

from extender.adapters.http.wait_report import WaitReport
from extender.adapters.kube.api import Refused
from extender.adapters.metrics.scraping import EXTENDER_PORT, NAME_LABEL, Scrape, by_address, scraped
from extender.app.holding import always_held
from extender.app.inspection.eligible import eligible_pods
from extender.app.inspection.known_holding import LEASES, has_policy, lease_of, new_pods
from extender.app.inspection.known_usage import usage_of
from extender.app.inspection.known_waits import waits_of
from extender.app.inspection.our_pods import said_by_ours
from extender.app.inspection.reading import ClusterLook, Reader, in_short, look
from extender.cluster.model import Pod
from extender.control.holding.decision import OFF_AFTER_SECONDS
from extender.errors import ClusterError
from extender.explain.doctor import due_now, is_doubtful
from extender.explain.findings import Deadline, Facts, FilterCalls, SchedulerConfiguration, Silent, Stated
from extender.explain.new_pods import NewPods

_CONFIGURATION_KEY = "kube-scheduler.yaml"
_NO_DEADLINE = 2**31 - 1
_ADD_NODES = ("cluster-autoscaler", "karpenter")


@dataclass(slots=True)
class Diagnosis:
    """One round of questions, to `dovetail serve` and `dovetail control` at these addresses; "": through their pods."""

    reader: Reader
    extender: str = ""
    control: str = ""
    again_seconds: float = 4.0
    hold_again_seconds: float = OFF_AFTER_SECONDS + 3.0

    def facts(self, cluster: ClusterLook) -> Facts:
        """Return all that could be read. Where pods are due to be released, the cluster is read a second time."""
        hold, always = new_pods(self.reader, cluster.settings), always_held(cluster.settings)
        again, later, hold_later = self._again(cluster, hold, always), None, None
        if again is not None:
            time.sleep(again)
        waits = waits_of(self.reader, self.control)
        known = None if isinstance(waits, str) else waits
        report = known or WaitReport(leads=False)
        if again is not None:
            later = look(self.reader, cluster.settings, cluster.source, known).order
            hold_later = new_pods(self.reader, cluster.settings)
        jobs = self.reader.objects("jobs", "/apis/batch/v1/jobs")
        deployments = self.reader.objects("deployments", "/apis/apps/v1/deployments")
        opportunistic = cluster.settings.opportunistic.enabled
        return Facts(
            schedulers=cluster.settings.control.schedulers,
            lease=lease_of(self.reader, cluster.settings),
            filter_calls=self._filter_calls(),
            configuration=self._configuration(),
            order=cluster.order,
            later=later,
            pods=cluster.pods,
            nodes=cluster.nodes,
            deadlines=self._deadlines(jobs, deployments),
            leases=frozenset(lease["metadata"]["name"] for lease in self.reader.objects("leases", f"{LEASES}/leases")),
            unread=self.reader.unread,
            passed_over=waits if isinstance(waits, str) else waits.passed_over,
            reserved=report.reserved,
            kept_idle=report.kept_idle,
            usage=usage_of(self.reader, self.control) if cluster.settings.usage.on else None,
            new_pods=hold,
            new_pods_later=hold_later,
            held_why=report.held_why,
            policy=has_policy(self.reader, cluster.settings) if hold is not None and hold.held is not None else None,
            autoscalers=_autoscalers(deployments),
            stated=Stated(
                cluster.settings.order,
                cluster.settings.placement.chosen_by == "filter",
                always,
                bool(cluster.settings.locality.wait_seconds),
            ),
            eligible=eligible_pods(self.reader, _settled(cluster), jobs) if opportunistic else None,
        )

    def _again(self, cluster: ClusterLook, hold: NewPods | None, always: str) -> float | None:
        """Return after how many seconds a second look would tell more; None where it would not."""
        if cluster.order is None:
            return None
        if is_doubtful(cluster.order, hold, always):
            return self.hold_again_seconds
        return self.again_seconds if due_now(cluster.order) else None

    def _filter_calls(self) -> FilterCalls | str:
        try:
            if self.extender:
                return _summed([by_address(self.extender)])
            texts, silent = said_by_ours(self.reader, EXTENDER_PORT, "metrics")
            scrapes = [scraped(source, text) for source, text in texts]
        except Refused as refusal:
            self.reader.note_barred("pods of serve", refusal)
            return f"its pods cannot be asked through the API server: {in_short(refusal)}"
        except ClusterError as error:
            return Silent(error) if self.extender else str(error)
        if not scrapes:
            return silent or f"there is no running pod of it in {self.reader.namespace} labelled {NAME_LABEL}"
        return replace(_summed(scrapes), silent=silent)

    def _configuration(self) -> SchedulerConfiguration | str:
        """Return what the chart's KubeSchedulerConfiguration says, where it can be read."""
        for config_map in self.reader.configurations():
            if _CONFIGURATION_KEY in config_map.get("data", {}):
                name = f"ConfigMap {config_map['metadata']['namespace']}/{config_map['metadata']['name']}"
                try:
                    return _configuration(name, yaml.safe_load(config_map["data"][_CONFIGURATION_KEY]))
                except (yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError) as error:
                    return f"{name} cannot be understood: {error!r}"
        missing = f"no ConfigMap in {self.reader.namespace} labelled {NAME_LABEL} has {_CONFIGURATION_KEY}"
        return self.reader.unread.get("configmaps", missing)

    def _deadlines(
        self, jobs: Sequence[Mapping[str, Any]], deployments: Sequence[Mapping[str, Any]]
    ) -> dict[str, Deadline]:
        """Return the deadlines that run while pods are held, by the UID of the pods' owner: a Job or a ReplicaSet."""
        deadlines: dict[str, Deadline] = {}
        for job in jobs:
            limit = job["spec"].get("activeDeadlineSeconds")
            if limit is not None:
                deadlines[job["metadata"]["uid"]] = Deadline(_name("Job", job), "activeDeadlineSeconds", limit)
        by_uid = {deployment["metadata"]["uid"]: deployment for deployment in deployments}
        for replica_set in self.reader.objects("replicasets", "/apis/apps/v1/replicasets"):
            deployment = by_uid.get(_controller(replica_set))
            limit = deployment["spec"].get("progressDeadlineSeconds") if deployment else None
            if deployment and limit is not None and limit < _NO_DEADLINE:
                name = _name("Deployment", deployment)
                deadlines[replica_set["metadata"]["uid"]] = Deadline(name, "progressDeadlineSeconds", limit)
        return deadlines


def _autoscalers(deployments: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the Deployments that add nodes for pods that look unschedulable, by what these are usually called."""
    return sorted(
        _name("Deployment", deployment)
        for deployment in deployments
        if any(name in deployment["metadata"]["name"] for name in _ADD_NODES)
    )


def _settled(cluster: ClusterLook) -> Sequence[Pod]:
    """Return the pods with what follows from their namespaces, where they take part in the order."""
    if cluster.order is None:
        return cluster.pods
    return [cluster.order.backlog.pod(pod.uid) or pod for pod in cluster.pods]


def _summed(scrapes: Sequence[Scrape]) -> FilterCalls:
    """Return the sum over all replicas; the number of nodes is the greatest that one of them knows."""

    def total(name: str, **labels: str) -> float:
        return sum(scrape.of(name, **labels) for scrape in scrapes)

    count, nodes = "dovetail_request_duration_seconds_count", "dovetail_filter_nodes"
    calls, about_one = total(count, verb="filter"), total(f"{nodes}_bucket", le="1.0")
    return FilterCalls(
        source=", ".join(scrape.source for scrape in scrapes),
        ready=all(scrape.of("dovetail_ready") > 0 for scrape in scrapes),
        nodes=int(max(scrape.of("dovetail_nodes") for scrape in scrapes)),
        calls=int(calls),
        failed=int(calls - total(count, verb="filter", result="ok")),
        samples=int(total(f"{nodes}_count") - about_one),
        sampled=int(total(f"{nodes}_sum") - about_one),
        started=max(scrape.of(f"{nodes}_created") for scrape in scrapes),
    )


def _configuration(name: str, document: Mapping[str, Any]) -> SchedulerConfiguration:
    (ours, *_) = document["extenders"]
    return SchedulerConfiguration(name, int(ours.get("weight", 1)))


def _controller(replica_set: Mapping[str, Any]) -> str:
    """Return the UID of the controlling owner, empty where there is none."""
    owners = replica_set["metadata"].get("ownerReferences", ())
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def _name(kind: str, document: Mapping[str, Any]) -> str:
    return f"{kind} {document['metadata']['namespace']}/{document['metadata']['name']}"

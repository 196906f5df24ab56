"""What `dovetail doctor` needs to know, gathered with whatever rights the caller has."""

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import yaml

from extender.adapters.kube.api import Refused
from extender.adapters.metrics.scraping import NAME_LABEL, Scrape, by_address, of_pods, our_pods
from extender.app.inspection.known_waits import waits_of
from extender.app.inspection.reading import Look, Reader, in_short, look
from extender.errors import ClusterError
from extender.explain.doctor import Called, Deadline, Facts, Lead, Told, due_now

_CONFIGURATION_KEY = "kube-scheduler.yaml"
_LEASES = "/apis/coordination.k8s.io/v1"


@dataclass(slots=True)
class Diagnosis:
    """One round of questions, to `dovetail serve` and `dovetail control` at these addresses; "": through their pods."""

    reader: Reader
    extender: str = ""
    control: str = ""
    again_seconds: float = 4.0

    def facts(self, seen: Look) -> Facts:
        """Return all that could be read; where pods are due to be released, after a second look."""
        later = None
        if seen.view is not None and due_now(seen.view):
            time.sleep(self.again_seconds)
            later = look(self.reader, seen.settings, seen.told_by).view
        waits = waits_of(self.reader, self.control)
        return Facts(
            schedulers=seen.settings.control.schedulers,
            lead=self._lead(seen),
            called=self._called(),
            told=self._told(),
            view=seen.view,
            later=later,
            pods=seen.pods,
            nodes=seen.nodes,
            deadlines=self._deadlines(),
            leases=frozenset(it["metadata"]["name"] for it in self.reader.objects("leases", f"{_LEASES}/leases")),
            unread=self.reader.unread,
            passed_over=waits if isinstance(waits, str) else waits.passed_over,
            reserved={} if isinstance(waits, str) else waits.reserved,
            kept_idle=0.0 if isinstance(waits, str) else waits.kept_idle,
        )

    def _lead(self, seen: Look) -> Lead | str | None:
        told = seen.settings.control.lease
        name = f"{told.namespace}/{told.name}"
        try:
            found = self.reader.api.read(f"{_LEASES}/namespaces/{told.namespace}/leases/{told.name}")
        except Refused as refusal:
            self.reader.note_barred(f"lease {name}", refusal)
            return None if refusal.status == 404 else in_short(refusal)
        spec = found.get("spec") or {}
        renewed = spec.get("renewTime")
        age = time.time() - datetime.fromisoformat(renewed).timestamp() if renewed else math.inf
        lasts = float(spec.get("leaseDurationSeconds") or told.seconds)
        return Lead(name, spec.get("holderIdentity") or "", max(age, 0.0), lasts)

    def _called(self) -> Called | str:
        try:
            scrapes = [by_address(self.extender)] if self.extender else self._of_pods()
        except Refused as refusal:
            self.reader.note_barred("pods of serve", refusal)
            return f"its pods cannot be asked through the API server: {in_short(refusal)}"
        except ClusterError as error:
            return str(error)
        if not scrapes:
            return f"there is no running pod of it in {self.reader.namespace} labelled {NAME_LABEL}"
        return _called(scrapes)

    def _of_pods(self) -> list[Scrape]:
        return of_pods(self.reader.api, our_pods(self.reader.api, self.reader.namespace))

    def _told(self) -> Told | str:
        """Return what the chart's KubeSchedulerConfiguration says, where it can be read."""
        for it in self.reader.configurations():
            if _CONFIGURATION_KEY in it.get("data", {}):
                name = f"ConfigMap {it['metadata']['namespace']}/{it['metadata']['name']}"
                try:
                    return _weight(name, yaml.safe_load(it["data"][_CONFIGURATION_KEY]))
                except (yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError) as error:
                    return f"{name} cannot be understood: {error!r}"
        missing = f"no ConfigMap in {self.reader.namespace} labelled {NAME_LABEL} has {_CONFIGURATION_KEY}"
        return self.reader.unread.get("configmaps", missing)

    def _deadlines(self) -> dict[str, Deadline]:
        """Return what runs while pods are held, by the UID of what owns the pods."""
        found: dict[str, Deadline] = {}
        for job in self.reader.objects("jobs", "/apis/batch/v1/jobs"):
            limit = job["spec"].get("activeDeadlineSeconds")
            if limit is not None:
                found[job["metadata"]["uid"]] = Deadline(_name("Job", job), "activeDeadlineSeconds", limit)
        deployments = {
            it["metadata"]["uid"]: it for it in self.reader.objects("deployments", "/apis/apps/v1/deployments")
        }
        for replicas in self.reader.objects("replicasets", "/apis/apps/v1/replicasets"):
            owner = deployments.get(_controller(replicas))
            limit = owner["spec"].get("progressDeadlineSeconds") if owner else None
            if owner and limit is not None and limit < 2**31 - 1:
                uid = replicas["metadata"]["uid"]
                found[uid] = Deadline(_name("Deployment", owner), "progressDeadlineSeconds", limit)
        return found


def _called(scrapes: Iterable[Scrape]) -> Called:
    """Return what all replicas say together; nodes are those of one of them."""
    found = list(scrapes)
    count, calls = "dovetail_request_duration_seconds_count", 0.0
    answered = singles = asked = total = 0.0
    for it in found:
        calls += it.of(count, verb="filter")
        answered += it.of(count, verb="filter", result="ok")
        singles += it.of("dovetail_filter_nodes_bucket", le="1.0")
        asked += it.of("dovetail_filter_nodes_count")
        total += it.of("dovetail_filter_nodes_sum")
    return Called(
        source=", ".join(it.source for it in found),
        ready=all(it.of("dovetail_ready") > 0 for it in found),
        nodes=int(max(it.of("dovetail_nodes") for it in found)),
        calls=int(calls),
        failed=int(calls - answered),
        samples=int(asked - singles),
        sampled=int(total - singles),
    )


def _weight(name: str, told: Mapping[str, Any]) -> Told:
    (ours, *_) = told["extenders"]
    return Told(name, int(ours.get("weight", 1)), int(told.get("percentageOfNodesToScore") or 0))


def _controller(of: Mapping[str, Any]) -> str:
    owners = of["metadata"].get("ownerReferences", ())
    return next((str(it["uid"]) for it in owners if it.get("controller")), "")


def _name(kind: str, of: Mapping[str, Any]) -> str:
    return f"{kind} {of['metadata']['namespace']}/{of['metadata']['name']}"

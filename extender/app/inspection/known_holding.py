"""Reads what says who holds and releases pods: the Lease of `control`, and the Hold (`order: auto`)."""

import math
import time
from datetime import datetime

from extender.adapters.kube.api import Refused
from extender.adapters.kube.holding import NAMESPACE_LABEL, ApiHold, namespace_of
from extender.app.inspection.reading import Reader, in_short
from extender.errors import ClusterError
from extender.explain.findings import LeaseState
from extender.explain.new_pods import NewPods, new_pods_of
from extender.settings import Settings

_BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
LEASES = "/apis/coordination.k8s.io/v1"


def lease_of(reader: Reader, settings: Settings) -> LeaseState | str | None:
    """Return the Lease that `control` leads by; why it cannot be read, or None where there is none."""
    wanted = settings.control.lease
    name = f"{wanted.namespace}/{wanted.name}"
    try:
        lease = reader.api.read(f"{LEASES}/namespaces/{wanted.namespace}/leases/{wanted.name}")
    except Refused as refusal:
        reader.note_barred(f"lease {name}", refusal)
        return None if refusal.is_not_found else in_short(refusal)
    spec = lease.get("spec") or {}
    renewed = spec.get("renewTime")
    age = time.time() - datetime.fromisoformat(renewed).timestamp() if renewed else math.inf
    lasts = float(spec.get("leaseDurationSeconds") or wanted.seconds)
    return LeaseState(name, spec.get("holderIdentity") or "", max(age, 0.0), lasts)


def new_pods(reader: Reader, settings: Settings) -> NewPods | None:
    """Return whether new pods are held, as the cluster's Hold says; None: with this order none says so."""
    if settings.order != "auto":
        return None
    try:
        return new_pods_of(ApiHold(reader.api, settings.hold_name).read(), time.time())
    except Refused as refusal:
        reader.note_barred(f"hold {settings.hold_name}", refusal)
        return NewPods(None, unread=in_short(refusal))
    except ClusterError as error:
        return NewPods(None, unread=str(error))


def has_policy(reader: Reader, settings: Settings) -> bool | None:
    """Return whether an admission policy goes by the Hold; None where that may not be read."""
    try:
        bindings = reader.api.read(_BINDINGS)["items"]
    except Refused as refusal:
        barred = reader.note_barred("mutatingadmissionpolicybindings", refusal)
        return None if barred or not refusal.is_not_found else False  # before Kubernetes 1.36 there is no such kind
    ours = namespace_of(settings.hold_name)
    selectors = ((binding["spec"].get("paramRef") or {}).get("selector") or {} for binding in bindings)
    return any(selector.get("matchLabels", {}).get(NAMESPACE_LABEL) == ours for selector in selectors)

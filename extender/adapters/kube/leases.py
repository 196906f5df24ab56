"""The Lease that one replica of `control` leads by."""

from datetime import UTC, datetime
from typing import Any

from extender.adapters.kube.api import Api, Refused
from extender.cluster.lease import Record


class ApiLease:
    """One Lease of an API server. Raises ClusterError."""

    def __init__(self, api: Api, namespace: str, name: str, seconds: float, call_seconds: float = 2.0) -> None:
        """`seconds` is what we write as its duration; a call that is silent for `call_seconds` has failed."""
        self._api = api.apart(call_seconds)
        self._namespace, self._name, self._seconds = namespace, name, seconds

    def read(self) -> Record | None:
        """Return it; None where there is none."""
        try:
            lease: dict[str, Any] = self._api.read(f"{self._all}/{self._name}")
        except Refused as refusal:
            if refusal.is_not_found:
                return None
            raise
        return self._record(lease)

    def write(self, holder: str, before: Record | None) -> Record:
        """Make `holder` its holder, unless it has changed since `before`; return what is there now."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        changes = 0 if before is None else before.transitions + (before.holder != holder)
        spec: dict[str, Any] = {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(self._seconds)),
            "renewTime": now,
            "leaseTransitions": changes,
        }
        if before is None or before.holder != holder:
            spec["acquireTime"] = now
        meta = {"name": self._name, "namespace": self._namespace}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
        if before is None:
            self._api.post(self._all, body)
        else:
            meta["resourceVersion"] = before.version
            self._api.put(f"{self._all}/{self._name}", body)
        return self.read() or Record(holder, self._seconds, "", changes)

    @property
    def _all(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self._namespace}/leases"

    def _record(self, lease: dict[str, Any]) -> Record:
        spec = lease.get("spec") or {}
        return Record(
            holder=spec.get("holderIdentity") or "",
            seconds=float(spec.get("leaseDurationSeconds") or self._seconds),
            version=lease["metadata"]["resourceVersion"],
            transitions=int(spec.get("leaseTransitions") or 0),
        )

"""The Lease that one replica of `control` leads by."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from extender.adapters.kube import Api, Refused
from extender.cluster.lease import Record


@dataclass(frozen=True, slots=True)
class ApiLease:
    """One Lease of an API server; `seconds` is what we write as its duration. Raises ClusterError."""

    api: Api
    namespace: str
    name: str
    seconds: float

    def read(self) -> Record | None:
        """Return it; None where there is none."""
        try:
            found: dict[str, Any] = self.api.read(f"{self._all}/{self.name}")
        except Refused as refusal:
            if refusal.status == 404:
                return None
            raise
        return self._record(found)

    def write(self, holder: str, before: Record | None) -> Record:
        """Make `holder` its holder, unless it has changed since `before`; return what is there now."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        changes = 0 if before is None else before.transitions + (before.holder != holder)
        spec: dict[str, Any] = {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(self.seconds)),
            "renewTime": now,
            "leaseTransitions": changes,
        }
        if before is None or before.holder != holder:
            spec["acquireTime"] = now
        meta = {"name": self.name, "namespace": self.namespace}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
        if before is None:
            self.api.post(self._all, body)
        else:
            meta["resourceVersion"] = before.version
            self.api.put(f"{self._all}/{self.name}", body)
        return self.read() or Record(holder, self.seconds, "", changes)

    @property
    def _all(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    def _record(self, found: dict[str, Any]) -> Record:
        spec = found.get("spec") or {}
        return Record(
            holder=spec.get("holderIdentity") or "",
            seconds=float(spec.get("leaseDurationSeconds") or self.seconds),
            version=found["metadata"]["resourceVersion"],
            transitions=int(spec.get("leaseTransitions") or 0),
        )

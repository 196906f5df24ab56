"""The Hold of an installation, read and written (charts/dovetail/templates/_hold.tpl has its schema)."""

from datetime import UTC, datetime
from typing import Any

from extender.adapters.kube.api import MERGE_PATCH, Api, Refused
from extender.cluster.hold import Hold

HOLDS = "/apis/dovetail.dev/v1alpha1/holds"

HELD_LABEL, NAMESPACE_LABEL = "dovetail.dev/held", "dovetail.dev/installed-in"
"""By these the policy selects its Hold, so that it costs a pod nothing while none is selected."""


class ApiHold:
    """The Hold of this name, "NAMESPACE.LEASE": pods are held where both its `spec` and its label say so.

    Raises ClusterError; a Refused of status 404 where there is no such kind.
    """

    def __init__(self, api: Api, name: str, call_seconds: float = 5.0) -> None:
        """Take for how long a call may be silent, until it has failed."""
        self._api, self._name = api.apart(call_seconds), name

    def read(self) -> Hold | None:
        """Return it; None where there is none."""
        try:
            document: dict[str, Any] = self._api.read(f"{HOLDS}/{self._name}")
        except Refused as refusal:
            if refusal.is_not_found:
                return None
            raise
        spec = document["spec"]
        version = document["metadata"]["resourceVersion"]
        held = bool(spec["held"]) and document["metadata"].get("labels", {}).get(HELD_LABEL) == "true"
        return Hold(held, spec.get("why") or "", version, _seconds(spec.get("since")))

    def write(self, hold: Hold, before: Hold | None) -> None:
        """Write it, unless it has changed since `before`; None: make it. `since` stays while `held` does."""
        since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        spec = {"held": hold.held, "since": since, "why": hold.why}
        labels = {HELD_LABEL: str(hold.held).lower(), NAMESPACE_LABEL: namespace_of(self._name)}
        if before is None:
            body = {
                "apiVersion": "dovetail.dev/v1alpha1",
                "kind": "Hold",
                "metadata": {"name": self._name, "labels": labels},
                "spec": spec,
            }
            self._api.post(HOLDS, body)
        else:
            if before.held == hold.held and before.since is not None:
                del spec["since"]
            body = {"metadata": {"resourceVersion": before.version, "labels": labels}, "spec": spec}
            self._api.patch(f"{HOLDS}/{self._name}", body, MERGE_PATCH)


def namespace_of(name: str) -> str:
    """Return the namespace of the installation whose Hold has this name: namespaces have no dots."""
    return name.partition(".")[0]


def _seconds(since: str | None) -> float | None:
    """Return a date in seconds since the epoch; None where somebody wrote none."""
    try:
        return datetime.fromisoformat(since).timestamp() if since else None
    except ValueError:
        return None

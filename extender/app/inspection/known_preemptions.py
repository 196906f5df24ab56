"""Why a pod was preempted, evicted or stays as it is, as an event says, or why it ended, as its status does.

Events are gone after an hour or so.
"""

from collections.abc import Mapping
from typing import Any

from extender.adapters.kube.api import Refused
from extender.app.inspection.reading import Reader

_PREEMPTED, _RECLAIMED = "Preempted", "Reclaimed"
_EVICTED = ("TaintManagerEviction", "Evicted")
"""The reasons of Kubernetes' own evictions: by a taint, and by a kubelet."""
_TAKEN_BACK = "Cancelling"
"""So begins the message of the same reason where a taint went in time."""


def preemption_of(reader: Reader, namespace: str, name: str, uid: str = "") -> str:
    """Return why a pod was preempted, last of several; empty where it was not, or nobody knows or may say.

    For those who use what it ran on, or for a queue below its share (reclaim), or by kube-scheduler for a pod of higher
    priority. Without `uid` it is any pod that had this name.
    """
    messages = (said_of(reader, namespace, name, reason, uid) for reason in (_PREEMPTED, _RECLAIMED))
    return next(filter(None, messages), "")


def eviction_of(reader: Reader, namespace: str, name: str) -> str:
    """Return why Kubernetes itself evicted the last pod of this name; empty where it did not, or nobody knows."""
    for reason in _EVICTED:
        message = said_of(reader, namespace, name, reason)
        if message and not message.startswith(_TAKEN_BACK):
            return f"{reason}: {message}"
    return ""


def end_of(status: Mapping[str, Any]) -> str:
    """Return why a pod failed or is being deleted, as its status says; empty where that does not say."""
    conditions = status.get("conditions") or ()
    targets = (
        condition
        for condition in conditions
        if condition["type"] == "DisruptionTarget" and condition["status"] == "True"
    )
    containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    ended = "; ".join(filter(None, map(_exit_of, containers)))
    return _reason_of(status) or _reason_of(next(targets, {})) or ended


def _reason_of(entry: Mapping[str, Any]) -> str:
    return ": ".join(filter(None, (entry.get("reason"), entry.get("message"))))


def _exit_of(container: Mapping[str, Any]) -> str:
    """Return how a container failed; empty where it did not."""
    ended = (container.get("state") or {}).get("terminated") or {}
    if not ended.get("exitCode"):
        return ""
    why = f", {ended['reason']}" if ended.get("reason", "Error") != "Error" else ""
    return f"container {container['name']}: exit code {ended['exitCode']}{why}"


def said_of(reader: Reader, namespace: str, name: str, reason: str, uid: str = "") -> str:
    """Return what the last event of this reason says of a pod; empty where there is none, or it may not be read."""
    wanted = f"involvedObject.kind=Pod,involvedObject.name={name},reason={reason}"
    try:
        events = reader.api.read(f"/api/v1/namespaces/{namespace}/events", [("fieldSelector", wanted)])["items"] or ()
    except Refused:
        return ""
    matching = [event for event in events if _is_of(event, name, uid, reason)]
    latest: dict[str, Any] = max(matching, key=_at, default={})
    return str(latest.get("message", ""))


def _at(event: dict[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def _is_of(event: dict[str, Any], name: str, uid: str, reason: str) -> bool:
    about = event.get("involvedObject") or {}
    return about.get("name") == name and uid in ("", about.get("uid")) and event.get("reason") == reason

"""Why a pod was preempted, or stays as it is, as an event says; events are gone after an hour or so."""

from typing import Any

from extender.adapters.kube.api import Refused
from extender.app.inspection.reading import Reader

_PREEMPTED, _RECLAIMED = "Preempted", "Reclaimed"


def preemption_of(reader: Reader, namespace: str, name: str, uid: str = "") -> str:
    """Return why a pod was preempted, last of several; empty where it was not, or nobody knows or may say.

    For those who use what it ran on, or for a queue below its share (reclaim), or by kube-scheduler for a pod of higher
    priority. Without `uid` it is any pod that had this name.
    """
    messages = (said_of(reader, namespace, name, reason, uid) for reason in (_PREEMPTED, _RECLAIMED))
    return next(filter(None, messages), "")


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

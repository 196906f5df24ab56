"""Why a pod was preempted, or stays as it is, as `control` said in an event; events are gone after an hour or so."""

from typing import Any

from extender.adapters.kube.api import Refused
from extender.app.inspection.reading import Reader

_PREEMPTED, _RECLAIMED, _COMPONENT = "Preempted", "Reclaimed", "dovetail"


def preemption_of(reader: Reader, namespace: str, name: str, uid: str = "") -> str:
    """Return why a pod was preempted, last of several; empty where it was not, or nobody knows or may say.

    For those who use what it ran on, or for a queue below its share (reclaim). Without `uid` it is any pod that had
    this name.
    """
    said = (said_of(reader, namespace, name, reason, uid) for reason in (_PREEMPTED, _RECLAIMED))
    return next(filter(None, said), "")


def said_of(reader: Reader, namespace: str, name: str, reason: str, uid: str = "") -> str:
    """Return what our last event of this reason says of a pod; empty where there is none, or it may not be read.

    kube-scheduler has events of the same reasons.
    """
    wanted = f"involvedObject.kind=Pod,involvedObject.name={name},reason={reason}"
    try:
        events = reader.api.read(f"/api/v1/namespaces/{namespace}/events", [("fieldSelector", wanted)])["items"] or ()
    except Refused:
        return ""
    matching = [event for event in events if _is_of(event, name, uid, reason)]
    latest: dict[str, Any] = max(matching, key=lambda event: str(event.get("lastTimestamp") or ""), default={})
    return str(latest.get("message", ""))


def _is_of(event: dict[str, Any], name: str, uid: str, reason: str) -> bool:
    about, component = event.get("involvedObject") or {}, (event.get("source") or {}).get("component")
    named = about.get("name") == name and uid in ("", about.get("uid"))
    return named and event.get("reason") == reason and component == _COMPONENT

"""Objects that are read as plain JSON, of whatever kind: fields that are used have the types that Kubernetes states."""

from datetime import datetime
from typing import Any

import msgspec


class _Owner(msgspec.Struct):
    uid: str = ""
    kind: str = ""
    name: str = ""


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None


class _Resources(msgspec.Struct):
    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


class _Port(msgspec.Struct, rename="camel"):
    container_port: int = 0


class _Container(msgspec.Struct, rename="camel"):
    name: str = ""
    resources: _Resources | None = None
    ports: list[_Port] | None = None
    env: list[dict[str, Any]] | None = None
    resize_policy: list[dict[str, Any]] | None = None


class _Gate(msgspec.Struct):
    name: str = ""


class _Rule(msgspec.Struct, rename="camel"):
    on_pod_conditions: list[dict[str, Any]] | None = None


class _FailurePolicy(msgspec.Struct):
    rules: list[_Rule] | None = None


class _Parameters(msgspec.Struct):
    selector: dict[str, Any] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None
    scheduler_name: str | None = None
    scheduling_gates: list[_Gate] | None = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    active_deadline_seconds: int | None = None
    progress_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    lease_duration_seconds: int | None = None
    holder_identity: str | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None
    pod_failure_policy: _FailurePolicy | None = None
    param_ref: _Parameters | None = None
    held: bool | None = None
    since: str | None = None


class _Subject(msgspec.Struct):
    kind: str = ""
    namespace: str = ""


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class _Status(msgspec.Struct):
    phase: str | None = None
    conditions: list[_Condition] | None = None


class _Object(msgspec.Struct, rename="camel"):
    metadata: _Meta
    spec: _Spec | None = None
    status: _Status | None = None
    data: dict[str, str] | None = None
    subjects: list[_Subject] | None = None
    involved_object: dict[str, Any] | None = None


class _List(msgspec.Struct):
    metadata: dict[str, Any]
    items: list[dict[str, Any]] | None


def plain(raw: bytes | msgspec.Raw) -> dict[str, Any]:
    """Return an object as plain JSON. Raises msgspec.DecodeError, also where name or types are not as above."""
    decoded = msgspec.json.decode(raw, type=dict[str, Any])
    _check(decoded)
    return decoded


def plain_answer(raw: bytes) -> dict[str, Any]:
    """Return an object or a list as plain JSON. Raises msgspec.DecodeError as `plain` does."""
    answer = msgspec.json.decode(raw, type=dict[str, Any])
    objects = msgspec.convert(answer, _List).items if "items" in answer else [answer]
    for document in objects or ():
        _check(document)
    return answer


def _check(document: dict[str, Any]) -> None:
    """Raise msgspec.ValidationError, which names object and field, where an object is not of the types above."""
    try:
        msgspec.convert(document, _Object)
    except msgspec.ValidationError as error:
        meta = document.get("metadata")
        names = [meta.get(field) for field in ("namespace", "name")] if isinstance(meta, dict) else []
        name = "/".join(str(part) for part in names if part) or "an object without a name"
        raise msgspec.ValidationError(f"{name}: {error}") from None

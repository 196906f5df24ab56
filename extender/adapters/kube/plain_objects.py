"""Objects that are read as plain JSON: fields that are used have the types that Kubernetes states, and are there.

A field that is null is not there, as Kubernetes has it.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

Documents = list[dict[str, Any]]


class _Owner(msgspec.Struct):
    uid: str
    kind: str = ""
    name: str = ""


class _Meta(msgspec.Struct, rename="camel", kw_only=True):
    name: str
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None


class _NamespacedMeta(_Meta, kw_only=True):
    namespace: str


class _WorkloadMeta(_NamespacedMeta, kw_only=True):
    uid: str


class _VersionedMeta(_Meta, kw_only=True):
    resource_version: str


class _Resources(msgspec.Struct):
    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


class _Port(msgspec.Struct, rename="camel"):
    container_port: int


class _Container(msgspec.Struct, rename="camel"):
    name: str
    resources: _Resources | None = None
    ports: list[_Port] | None = None
    env: list[dict[str, Any]] | None = None
    resize_policy: list[dict[str, Any]] | None = None


class _Gate(msgspec.Struct):
    name: str


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
    backoff_limit_per_index: int | None = None
    lease_duration_seconds: int | None = None
    holder_identity: str | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None
    pod_failure_policy: _FailurePolicy | None = None
    param_ref: _Parameters | None = None
    held: bool | None = None
    since: str | None = None


class _PodSpec(_Spec, kw_only=True):
    containers: list[_Container]


class _HoldSpec(_Spec, kw_only=True):
    held: bool


class _Account(msgspec.Struct, tag_field="kind", tag="ServiceAccount"):
    namespace: str


class _User(msgspec.Struct, tag_field="kind", tag="User"):
    """Of no namespace."""


class _Group(msgspec.Struct, tag_field="kind", tag="Group"):
    """Of no namespace."""


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str
    last_transition_time: datetime | None = None


class _ContainerStatus(msgspec.Struct):
    name: str


class _Status(msgspec.Struct, rename="camel"):
    phase: str | None = None
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None
    failed: int | None = None


class _Object(msgspec.Struct, rename="camel"):
    metadata: _Meta
    spec: _Spec | None = None
    status: _Status | None = None
    data: dict[str, str] | None = None
    subjects: list[_Account | _User | _Group] | None = None
    involved_object: dict[str, Any] | None = None


class _Namespaced(_Object, kw_only=True):
    metadata: _NamespacedMeta


class _Workload(_Object, kw_only=True):
    metadata: _WorkloadMeta
    spec: _Spec


class _Pod(_Workload, kw_only=True):
    spec: _PodSpec


class _Binding(_Object, kw_only=True):
    spec: _Spec


class _Lease(_Object, kw_only=True):
    metadata: _VersionedMeta


class _Hold(_Lease, kw_only=True):
    spec: _HoldSpec


_KINDS: Mapping[str, type[_Object]] = {
    "/api/v1/pods": _Pod,
    "/api/v1/configmaps": _Namespaced,
    "/apis/batch/v1/jobs": _Workload,
    "/apis/apps/v1/deployments": _Workload,
    "/apis/apps/v1/replicasets": _Workload,
    "/apis/coordination.k8s.io/v1/leases": _Lease,
    "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings": _Binding,
    "/apis/dovetail.dev/v1alpha1/holds": _Hold,
}
"""What the objects at a path are, of all namespaces; those of any other path have a name."""


class _List(msgspec.Struct):
    metadata: dict[str, Any]
    items: Documents | None


def plain(raw: bytes | msgspec.Raw, path: str) -> dict[str, Any]:
    """Return an object of this path as plain JSON. Raises msgspec.DecodeError, also where it is not as stated above."""
    decoded = msgspec.json.decode(raw, type=dict[str, Any])
    return _checked([decoded], bytes(raw), path)[0]


def plain_answer(raw: bytes, path: str) -> dict[str, Any]:
    """Return the object or the list at this path as plain JSON. Raises msgspec.DecodeError as `plain` does."""
    answer = msgspec.json.decode(raw, type=dict[str, Any])
    if "items" not in answer:
        return _checked([answer], raw, path)[0]
    return {**answer, "items": _checked(msgspec.convert(answer, _List).items or [], raw, path)}


def _checked(documents: Documents, raw: bytes, path: str) -> Documents:
    """Return the objects without what is null. Raises msgspec.ValidationError, which names object and field."""
    documents = _without_nulls(documents) if b"null" in raw else documents
    of_all_namespaces = re.sub("/namespaces/[^/]+/", "/", path)
    kind = next((kind for start, kind in _KINDS.items() if of_all_namespaces.startswith(start)), _Object)
    for document in documents:
        try:
            msgspec.convert(document, kind)
        except msgspec.ValidationError as error:
            meta = document.get("metadata")
            names = [meta.get(field) for field in ("namespace", "name")] if isinstance(meta, dict) else []
            name = "/".join(str(part) for part in names if part) or "an object without a name"
            raise msgspec.ValidationError(f"{name}: {error}") from None
    return documents


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - whatever JSON is there
    if isinstance(value, dict):
        return {name: _without_nulls(entry) for name, entry in value.items() if entry is not None}
    return [_without_nulls(entry) for entry in value] if isinstance(value, list) else value

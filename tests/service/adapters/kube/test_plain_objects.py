"""Objects that are read as plain JSON."""

import json

import msgspec
import pytest

from extender.adapters.kube.plain_objects import plain, plain_answer

META = {"namespace": "d", "name": "a", "uid": "u", "resourceVersion": "5"}
POD = {
    "metadata": {**META, "ownerReferences": [{"uid": "j"}]},
    "spec": {"containers": [{"name": "main", "ports": [{"containerPort": 80}]}], "schedulingGates": [{"name": "g"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "main"}]},
}
WORKLOAD = {"metadata": META, "spec": {}}
SUBJECT = {"kind": "ServiceAccount", "name": "x", "namespace": "ns"}
OBJECTS = {
    "/api/v1/namespaces/d/pods/a": (POD, [
        "metadata.namespace", "metadata.name", "metadata.uid", "metadata.ownerReferences.0.uid", "spec",
        "spec.containers", "spec.containers.0.name", "spec.containers.0.ports.0.containerPort",
        "spec.schedulingGates.0.name", "status.conditions.0.type", "status.conditions.0.status",
        "status.containerStatuses.0.name",
    ]),
    "/apis/batch/v1/namespaces/d/jobs/a": (WORKLOAD, ["metadata.namespace", "metadata.uid", "spec"]),
    "/apis/apps/v1/deployments": (WORKLOAD, ["metadata.namespace", "metadata.uid", "spec"]),
    "/apis/apps/v1/namespaces/d/replicasets/a": (WORKLOAD, ["metadata.namespace", "metadata.uid", "spec"]),
    "/api/v1/namespaces/d/configmaps": ({"metadata": META}, ["metadata.namespace"]),
    "/apis/coordination.k8s.io/v1/namespaces/d/leases/a": ({"metadata": META}, ["metadata.resourceVersion"]),
    "/apis/dovetail.dev/v1alpha1/holds/a": (
        {"metadata": META, "spec": {"held": True}}, ["metadata.resourceVersion", "spec", "spec.held"],
    ),
    "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings": (WORKLOAD, ["spec"]),
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": (
        {"metadata": META, "subjects": [{"kind": "User", "name": "x"}, SUBJECT]}, ["subjects.1.namespace"],
    ),
}  # fmt: skip
MISSING = [(path, whole, field) for path, (whole, fields) in OBJECTS.items() for field in fields]


def lacking(whole, field, *, null=False):
    """Return a copy of an object without a field, or with null there."""
    copy = json.loads(json.dumps(whole))
    *above, last = field.split(".")
    inside = copy
    for name in above:
        inside = inside[int(name) if name.isdigit() else name]
    if null:
        inside[last] = None
    else:
        del inside[last]
    return copy


@pytest.mark.parametrize("null", [False, True], ids=["missing", "null"])
@pytest.mark.parametrize(("path", "whole", "field"), MISSING, ids=[f"{path} {field}" for path, _, field in MISSING])
def test_an_object_that_lacks_a_required_field_is_named_with_it(path, whole, field, null):
    raw = json.dumps(lacking(whole, field, null=null)).encode()
    with pytest.raises(msgspec.ValidationError, match=rf"^(d/a|a|d): .*`{field.rpartition('.')[2]}`"):
        plain(raw, path)
    with pytest.raises(msgspec.ValidationError, match=rf"^(d/a|a|d): .*`{field.rpartition('.')[2]}`"):
        plain_answer(b'{"metadata": {}, "items": [%b]}' % raw, path)


@pytest.mark.parametrize(("path", "whole"), [(path, whole) for path, (whole, _) in OBJECTS.items()])
def test_an_object_that_has_them_is_read_as_it_is(path, whole):
    assert plain(json.dumps(whole).encode(), path) == whole


def test_what_is_null_is_not_there():
    ports = [{"containerPort": 80, "name": None}]
    pod = {**POD, "spec": {"containers": [{"name": "main", "ports": ports, "env": None}], "schedulingGates": None}}
    read = plain(json.dumps({**pod, "status": None}).encode(), "/api/v1/pods")
    assert read == {
        "metadata": POD["metadata"],
        "spec": {"containers": [{"name": "main", "ports": [{"containerPort": 80}]}]},
    }

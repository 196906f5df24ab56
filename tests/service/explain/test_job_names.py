"""A job is shown by a name that its user knows, never by a UID."""

import msgspec
import pytest

from extender.adapters.kube.decoding import pod_from
from extender.adapters.kube.objects import PodObject
from extender.explain.job_names import job_name

OWNER = {"uid": "3f2b", "kind": "Job", "name": "nightly", "controller": True}


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({}, "Pod team/p"),
        ({"ownerReferences": [OWNER]}, "Job team/nightly"),
        ({"ownerReferences": [{**OWNER, "controller": False}]}, "Pod team/p"),
        ({"ownerReferences": [OWNER], "labels": {"dovetail.dev/job": "mine"}}, "team/mine"),
        ({"labels": {"batch.kubernetes.io/job-name": "nightly"}}, "team/nightly"),
        ({"ownerReferences": [{**OWNER, "name": ""}]}, "Pod team/p"),
    ],
)
def test_a_job_is_shown_by_its_label_else_its_owner_else_its_pod(more, name):
    document = {"metadata": {"name": "p", "namespace": "team", "uid": "9c1d", **more}, "spec": {}}
    assert job_name(pod_from(msgspec.convert(document, PodObject))) == name

"""Which held pods may be made opportunistic, as doctor counts them from their specs."""

import pytest

from extender.app.inspection.checks import Diagnosis
from extender.app.inspection.reading import Reader, look
from extender.explain.findings import Eligible
from extender.settings import Settings
from extender.settings.sections import OpportunisticSettings
from tests.service.app.inspection.api_server import RELEASE, items, server

JOBS = "/apis/batch/v1/jobs"


def held(name, *, owner="Job", annotations=None, labels=None, node=None, limits=None, cpu="1"):
    gates = [] if node else [{"name": "dovetail.dev/hold"}]
    owners = [{"kind": owner, "name": "j", "uid": f"uid-{owner}", "controller": True}] if owner else []
    resources = {"requests": {"cpu": cpu}, **({"limits": limits} if limits else {})}
    return {
        "metadata": {
            "namespace": "d", "name": name, "uid": name, "ownerReferences": owners,
            "annotations": annotations or {}, "labels": labels or {},
        },
        "spec": {
            "schedulingGates": gates, "schedulerName": "dovetail", **({"nodeName": node} if node else {}),
            "containers": [{"name": "main", "resources": resources}],
        },
        "status": {"qosClass": "Burstable", "phase": "Running" if node else "Pending"},
    }  # fmt: skip


def job(**spec):
    return {"metadata": {"namespace": "d", "name": "j", "uid": "uid-Job"}, "spec": spec}


def counted(*pods, jobs=(), enabled=True):
    settings = Settings(opportunistic=OpportunisticSettings(enabled=enabled))
    reader = Reader(server(**{"/api/v1/pods": items(*pods), JOBS: items(*jobs)}), RELEASE)
    return Diagnosis(reader).facts(look(reader, settings, "here")).eligible


def test_held_pods_are_counted_by_why_they_may_not():
    pods = [
        held("a"),
        held("b", owner="ReplicaSet"),
        held("c", owner="StatefulSet"),
        held("d", annotations={"dovetail.dev/opportunistic": "never"}),
        held("runs", owner="ReplicaSet", node="n1"),
    ]
    assert counted(*pods) == Eligible(
        1,
        {
            "its owner does not run to completion, and nobody has opted in": 2,
            "its user, queue or namespace keeps it regular": 1,
        },
    )


def test_pods_that_never_are_regular_may_run_there_unless_they_are_a_gang():
    says = {"dovetail.dev/opportunistic": "only", "dovetail.dev/demand": '{"cpu": "1", "memory": "1Gi"}'}
    gang = {"scheduling.x-k8s.io/pod-group": "g"}
    pods = (
        held(name, cpu="0", annotations=says, labels=labels) for name, labels in [("a", {}), ("b", {}), ("c", gang)]
    )
    assert counted(*pods) == Eligible(2, {"it starts together with others": 1})


@pytest.mark.parametrize(("limit", "eligible"), [(1, 0), (2, 1)])
def test_a_job_that_an_eviction_could_fail_keeps_its_pods_regular(limit, eligible):
    # One more failure than what stays for pods that fail by themselves.
    found = counted(held("a"), jobs=[job(backoffLimit=limit)])
    assert found.pods == eligible
    assert sum(found.reasons.values()) == 1 - eligible


def test_those_that_are_opportunistic_already_count_against_their_jobs_limit():
    given_up = {"dovetail.dev/regular-requests": '{"containers": {"main": {"cpu": "1"}}}'}
    runs = held("runs", node="n1", cpu="0", annotations=given_up)
    assert counted(held("a"), runs, jobs=[job(backoffLimit=2)]).pods == 0
    assert counted(held("a"), runs, jobs=[job(backoffLimit=3)]).pods == 1


def test_where_settings_have_no_opportunistic_pods_nothing_is_counted():
    assert counted(held("a"), enabled=False) is None

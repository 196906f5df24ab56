"""A recording reads when a pod was bound, when its last container ended, and which constraints it does not hold."""

import json

import msgspec
import pytest

from extender.adapters.kube.observed import observed_pods
from extender.cluster.recording.observed import Moments


def raw(**status):
    return msgspec.Raw(json.dumps({"metadata": {"name": "p", "uid": "u"}, "status": status}).encode())


def ended(at):
    return {"state": {"terminated": {"finishedAt": at}}}


def test_moments_are_those_of_the_binding_and_of_the_last_end():
    event = observed_pods().seen(
        raw(
            phase="Succeeded",
            conditions=[
                {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:09Z"},
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:00:05Z"},
            ],
            containerStatuses=[ended("1970-01-01T00:01:00Z"), ended("1970-01-01T00:02:00Z"), {"state": {}}],
        )
    )
    assert event.moments == Moments(bound=5.0, ended=120.0)
    assert event.pod.finished


def test_a_pod_that_says_nothing_or_nonsense_has_no_moments():
    odd = raw(conditions=[{"type": "PodScheduled", "status": "False"}], containerStatuses=[ended("soon"), {}])
    event = observed_pods().listed(iter([raw(), odd]))
    assert event.moments == [Moments(), Moments()]
    assert [pod.uid for pod in event.pods] == ["u", "u"]


def with_spec(**spec):
    return msgspec.Raw(json.dumps({"metadata": {"name": "p", "uid": "u"}, "spec": spec}).encode())


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("spec", "unwritten"),
    [
        ({"containers": [{}, {"ports": [{"containerPort": 80}, {"hostPort": 8080}]}]}, ("host-ports",)),
        ({"containers": [{"ports": [{"containerPort": 80}]}, {"ports": None}]}, ()),
        ({"affinity": {"podAffinity": {REQUIRED: [{}]}}}, ("pod-affinity",)),
        ({"affinity": {"podAntiAffinity": {REQUIRED: [{}]}}}, ("pod-affinity",)),
        ({"affinity": {"podAffinity": {PREFERRED: [{}]}, "nodeAffinity": {}}}, ()),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, ("topology-spread",)),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, ()),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, ("volumes",)),
        ({"volumes": [{"name": "v", "ephemeral": {}}]}, ("volumes",)),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, ()),
    ],
)
def test_hard_constraints_that_a_recording_does_not_hold_are_named(spec, unwritten):
    assert observed_pods().seen(with_spec(**spec)).moments == Moments(unwritten=unwritten)
    assert observed_pods().listed(iter([with_spec(**spec)])).moments == [Moments(unwritten=unwritten)]

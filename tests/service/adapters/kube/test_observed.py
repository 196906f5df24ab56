"""A recording reads when a pod was bound, when its last container ended, and what it asks of other pods."""

import json

import msgspec
import pytest

from extender.adapters.kube.observed import observed_pods
from extender.cluster.eligibility import Requirement
from extender.cluster.peers import ALONE, HostPort, Peers, PodTerm, TopologySpread
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
                {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "1970-01-01T00:01:30Z"},
            ],
            containerStatuses=[ended("1970-01-01T00:01:00Z"), ended("1970-01-01T00:02:00Z"), {"state": {}}],
        )
    )
    assert event.moments == Moments(bound=5.0, ended=120.0, disrupted=90.0)
    assert event.pod.finished


def test_a_pod_that_says_nothing_or_nonsense_has_no_moments():
    conditions = [{"type": "PodScheduled", "status": "False"}, {"type": "DisruptionTarget", "status": "False"}]
    odd = raw(conditions=conditions, containerStatuses=[ended("soon"), {}])
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
        ({"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": {}}]}}}, ()),
        ({"affinity": {"podAffinity": {REQUIRED: [{"namespaceSelector": {}}]}}}, ()),
        (
            {"affinity": {"podAffinity": {REQUIRED: [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]}}},
            ("namespace-selectors",),
        ),
        ({"affinity": {"podAffinity": {PREFERRED: [{}]}, "nodeAffinity": {}}}, ("preferred-affinity",)),
        ({"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1}]}}}, ("preferred-affinity",)),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, ()),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, ("schedule-anyway",)),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, ("volumes",)),
        ({"volumes": [{"name": "v", "ephemeral": {}}]}, ("volumes",)),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, ()),
    ],
)
def test_constraints_and_preferences_that_a_recording_does_not_hold_are_named(spec, unwritten):
    assert observed_pods().seen(with_spec(**spec)).moments.unwritten == unwritten
    assert observed_pods().listed(iter([with_spec(**spec)])).moments[0].unwritten == unwritten


def peers_of(spec, labels=None):
    meta = {"name": "p", "uid": "u", "namespace": "shop", "labels": labels}
    raw = msgspec.Raw(json.dumps({"metadata": meta, "spec": spec}).encode())
    return observed_pods().seen(raw).moments.peers


WEB = {"matchLabels": {"app": "web"}}
IS_WEB = (Requirement("app", "In", ("web",)),)


@pytest.mark.parametrize(
    ("term", "read"),
    [
        ({"topologyKey": "zone", "labelSelector": WEB}, PodTerm("zone", ("shop",), IS_WEB)),
        ({"topologyKey": "zone", "labelSelector": {}}, PodTerm("zone", ("shop",), ())),
        ({"topologyKey": "zone"}, PodTerm("zone", ("shop",), None)),
        ({"topologyKey": "zone", "labelSelector": WEB, "namespaces": ["b", "a"]}, PodTerm("zone", ("a", "b"), IS_WEB)),
        (
            {"topologyKey": "zone", "labelSelector": WEB, "namespaces": ["b"], "namespaceSelector": {}},
            PodTerm("zone", ("*",), IS_WEB),
        ),
        (
            {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
            PodTerm("zone", ("shop",), (Requirement("app", "Exists"),)),
        ),
    ],
)
def test_required_terms_about_pods_are_read_with_their_namespaces_and_selectors(term, read):
    assert peers_of({"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}) == Peers(away=(read,))
    assert peers_of({"affinity": {"podAffinity": {REQUIRED: [term]}}}) == Peers(near=(read,))
    assert peers_of({"affinity": {"podAffinity": {PREFERRED: [{"podAffinityTerm": term}]}}}) == ALONE


def test_a_spread_is_read_with_its_policies_and_the_pods_own_values_of_match_label_keys():
    hard = {
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "maxSkew": 2,
        "minDomains": 3,
        "labelSelector": WEB,
        "matchLabelKeys": ["pod-template-hash", "not-there"],
        "nodeAffinityPolicy": "Ignore",
        "nodeTaintsPolicy": "Honor",
    }
    soft = {**hard, "whenUnsatisfiable": "ScheduleAnyway"}
    selector = (*IS_WEB, Requirement("pod-template-hash", "In", ("x1",)))
    read = TopologySpread(PodTerm("zone", ("shop",), selector), 2, 3, by_affinity=False, by_taints=True)
    found = peers_of({"topologySpreadConstraints": [soft, hard]}, {"pod-template-hash": "x1"})
    assert found == Peers(spread=(read,))


def test_ports_of_the_node_are_those_of_containers_and_sidecars():
    ports = [{"containerPort": 80}, {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]
    again = [{"hostPort": 80, "hostIP": "0.0.0.0"}, {"hostPort": 80}]
    sidecar, first = {"ports": [{"hostPort": 81}], "restartPolicy": "Always"}, {"ports": [{"hostPort": 82}]}
    found = peers_of({"containers": [{"ports": ports}, {"ports": again}], "initContainers": [first, sidecar]})
    assert found.ports == (HostPort(53, "UDP", "10.0.0.1"), HostPort(80), HostPort(81))


def test_what_pods_have_alike_is_held_once():
    spec = {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": WEB}]}}}
    raw = msgspec.Raw(json.dumps({"metadata": {"labels": {"app": "web"}}, "spec": spec}).encode())
    one, other = observed_pods().listed(iter([raw, raw])).moments
    assert one.peers is other.peers
    assert one.labels is other.labels
    assert one.labels == {"app": "web"}


def test_of_what_pods_have_alike_the_oldest_is_forgotten_where_there_is_too_much(monkeypatch):
    monkeypatch.setattr("extender.adapters.kube.observed._MOST_KEPT", 2)
    raws = [msgspec.Raw(json.dumps({"metadata": {"labels": {"app": name}}}).encode()) for name in "abcdbd"]
    _, old, _, new, old_again, new_again = (one.labels for one in observed_pods().listed(raws).moments)
    assert old_again is not old
    assert new_again is new

"""The facts that `dovetail doctor` gathers, with whatever rights."""

import pytest

from extender.app.inspection.checks import Diagnosis
from extender.app.inspection.reading import Reader, look
from extender.explain.findings import Deadline, FilterCalls, SchedulerConfiguration, Silent
from extender.explain.new_pods import NewPods
from extender.settings import Settings
from tests.service.app.inspection.api_server import (
    CONFIG_MAPS,
    METRICS,
    OUR_PODS,
    RELEASE,
    SERVES,
    config_map,
    items,
    server,
)


def bound_by(labels):
    """Return a binding of a policy that reads an object with these labels."""
    return {"spec": {"paramRef": {"selector": {"matchLabels": labels}}}}


class TestDiagnosis:
    def facts(self, address="", **more):
        reader = Reader(server(**more), RELEASE)
        return Diagnosis(reader, address).facts(look(reader, Settings(), "here"))

    def test_a_lease_that_is_not_there_is_none_and_one_that_may_not_be_read_is_words(self):
        path = "/apis/coordination.k8s.io/v1/namespaces/dovetail-system/leases/dovetail-control"
        assert self.facts().lease is None
        assert self.facts(**{path: None}).lease == "you may not (403)"

    def test_a_lease_says_who_holds_it_and_how_old_its_renewal_is(self):
        path = "/apis/coordination.k8s.io/v1/namespaces/dovetail-system/leases/dovetail-control"
        spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"}
        lease = self.facts(**{path: {"spec": spec}}).lease
        assert (lease.name, lease.holder, lease.seconds) == ("dovetail-system/dovetail-control", "me", 15.0)
        assert lease.age_seconds > 86_400
        assert self.facts(**{path: {"spec": {"holderIdentity": ""}}}).lease.age_seconds == float("inf")

    def test_the_extender_is_asked_through_its_pods(self):
        proxy = "/api/v1/namespaces/n/pods/p:1/proxy/metrics"
        calls = self.facts(**{OUR_PODS: items(SERVES), proxy: METRICS}).filter_calls
        # 9 calls, 5 about one node; the other 4 about 2,005 - 5 = 2,000.
        assert calls == FilterCalls(
            "pod n/p", True, nodes=1000, calls=9, failed=2, samples=4, sampled=2000, started=3.0
        )

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ({}, "there is no running pod of it in dovetail-system labelled app.kubernetes.io/name=dovetail"),
            ({OUR_PODS: None}, "its pods cannot be asked through the API server: you may not (403)"),
            (
                {OUR_PODS: items(SERVES), "/api/v1/namespaces/n/pods/p:1/proxy/metrics": None},
                "its pods cannot be asked through the API server: you may not (403)",
            ),
        ],
    )
    def test_where_nobody_can_be_asked_it_says_why(self, more, said):
        assert self.facts(**more).filter_calls == said

    def test_an_address_that_does_not_answer_is_silent(self):
        calls = self.facts("http://127.0.0.1:9").filter_calls
        assert "http://127.0.0.1:9" in calls
        assert isinstance(calls, Silent)

    @pytest.mark.parametrize(
        ("ready", "kind", "said"),
        [
            ("True", str, "its pods cannot be asked through the API server: {why}; a NetworkPolicy may forbid it"),
            ("False", Silent, "none of its pods is ready, nor answers through the API server: {why}"),
        ],
    )
    def test_pods_that_do_not_answer_are_silent_where_the_kubelet_too_finds_none_of_them_ready(self, ready, kind, said):
        pod = {**SERVES, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}}
        calls = self.facts(**{OUR_PODS: items(pod)}).filter_calls
        assert (type(calls), calls) == (kind, said.format(why="pod n/p: answer 404"))

    def test_a_replica_that_does_not_answer_is_named_beside_those_that_do(self):
        other = {**SERVES, "metadata": {"namespace": "n", "name": "other"}}
        proxy = "/api/v1/namespaces/n/pods/p:1/proxy/metrics"
        calls = self.facts(**{OUR_PODS: items(other, SERVES), proxy: METRICS}).filter_calls
        assert (calls.source, calls.calls, calls.silent) == ("pod n/p", 9, "pod n/other: answer 404")

    def test_the_weight_is_that_of_the_config_map(self):
        text = "extenders: [{weight: 3}]\n"
        maps = items(config_map("x-kube-scheduler", **{"kube-scheduler.yaml": text}))
        assert self.facts(**{CONFIG_MAPS: maps}).configuration == SchedulerConfiguration(
            "ConfigMap dovetail-system/x-kube-scheduler", 3
        )

    @pytest.mark.parametrize("text", ["extenders: []", "- 1", "{", "extenders: [{weight: x}]"])
    def test_a_configuration_that_cannot_be_understood_is_words(self, text):
        maps = items(config_map("x", **{"kube-scheduler.yaml": text}))
        assert self.facts(**{CONFIG_MAPS: maps}).configuration.startswith(
            "ConfigMap dovetail-system/x cannot be understood"
        )

    def test_deadlines_are_those_of_jobs_and_of_deployments_through_their_replica_sets(self):
        def thing(name, uid, owner="", **spec):
            owners = [{"uid": owner, "controller": True}] if owner else []
            return {"metadata": {"namespace": "n", "name": name, "uid": uid, "ownerReferences": owners}, "spec": spec}

        found = self.facts(
            **{
                "/apis/batch/v1/jobs": items(thing("j", "1", activeDeadlineSeconds=60), thing("k", "2")),
                "/apis/apps/v1/deployments": items(thing("d", "3", progressDeadlineSeconds=600)),
                "/apis/apps/v1/replicasets": items(thing("d-1", "4", "3"), thing("alone", "5")),
            }
        ).deadlines
        assert found == {
            "1": Deadline("Job n/j", "activeDeadlineSeconds", 60),
            "4": Deadline("Deployment n/d", "progressDeadlineSeconds", 600),
        }

    def test_what_may_not_be_read_is_noted(self):
        lease = "/apis/coordination.k8s.io/v1/namespaces/dovetail-system/leases/dovetail-control"
        reader = Reader(server(**{lease: None, OUR_PODS: None}), RELEASE)
        Diagnosis(reader).facts(look(reader, Settings(), "here"))
        why = "you may not (403)"
        assert reader.unread == {
            "lease dovetail-system/dovetail-control": why,
            "pods of serve": why,
            "pods of control": why,
        }


HOLD = "/apis/dovetail.dev/v1alpha1/holds/dovetail-system.dovetail-control"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"


class TestHolding:
    def facts(self, order="auto", **more):
        reader = Reader(server(**more), RELEASE)
        told = look(reader, Settings(order=order), "here")
        return Diagnosis(reader, hold_again_seconds=0.0).facts(told), reader.unread

    def hold(self, *, held):
        labels = {"dovetail.dev/held": str(held).lower()}
        return {HOLD: {"metadata": {"resourceVersion": "1", "labels": labels}, "spec": {"held": held, "why": "x"}}}

    def test_the_hold_is_read_where_the_order_is_auto(self):
        facts, _ = self.facts(**self.hold(held=False))
        assert (facts.new_pods, facts.stated.order) == (NewPods(False, "x"), "auto")
        assert self.facts("gates", **self.hold(held=False))[0].new_pods is None
        assert self.facts()[0].new_pods == NewPods(None)

    def test_one_that_may_not_be_read_is_named(self):
        facts, unread = self.facts(**{HOLD: None})
        assert facts.new_pods == NewPods(None, unread="you may not (403)")
        assert "hold dovetail-system.dovetail-control" in unread

    def test_a_hold_that_the_plan_does_not_bear_out_is_looked_at_twice(self):
        assert self.facts(**self.hold(held=True))[0].new_pods_later == NewPods(True, "x")
        assert self.facts(**self.hold(held=False))[0].new_pods_later is None

    @pytest.mark.parametrize(
        ("bindings", "policy"),
        [
            (items(bound_by({"dovetail.dev/installed-in": "dovetail-system"}), {"spec": {}}), True),
            (items(bound_by({"dovetail.dev/installed-in": "another"}), {"spec": {"paramRef": {"name": "x"}}}), False),
            (404, False),
            (None, None),
        ],
    )
    def test_whether_a_policy_goes_by_it_is_seen_by_its_binding(self, bindings, policy):
        assert self.facts(**self.hold(held=False), **{BINDINGS: bindings})[0].policy is policy

    def test_what_adds_nodes_is_found_by_its_usual_names(self):
        made = [{"metadata": {"namespace": "n", "name": name, "uid": name}, "spec": {}} for name in NAMES]
        found = self.facts(**{"/apis/apps/v1/deployments": items(*made)})[0].autoscalers
        assert found == ["Deployment n/eks-cluster-autoscaler", "Deployment n/karpenter"]


NAMES = ("karpenter", "web", "eks-cluster-autoscaler")

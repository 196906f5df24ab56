"""Who gets the gate: the chart's MutatingAdmissionPolicy on a real API server."""

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.rest import RequestRefused, request
from tests.integration.gating import HOLD, gates, namespace, policy, require_policies, try_pod

DAEMONS = "/apis/apps/v1/namespaces/gated/daemonsets"


class TestForTheSecondScheduler:
    """`mode: scheduler`."""

    @pytest.fixture(scope="class")
    @classmethod
    def space(cls, control_plane):
        """Make a managed namespace, with the policy."""
        require_policies(control_plane)
        with namespace(control_plane, "gated") as name, policy(control_plane, name):
            yield name

    @pytest.fixture
    def gated(self, control_plane, space):
        """Return what tries a pod in the managed namespace."""
        return lambda **told: try_pod(control_plane.client(), builders.pod("tried", namespace=space, **told))

    def test_a_plain_pod_of_a_managed_namespace_is_gated_and_named_to_our_scheduler(self, gated):
        pod = gated(cpu=1)

        assert gates(pod) == [HOLD]
        assert pod["spec"]["schedulerName"] == "dovetail"

    def test_a_pod_that_names_our_scheduler_is_gated(self, gated):
        assert gates(gated(scheduler_name="dovetail")) == [HOLD]

    @pytest.mark.usefixtures("gated")
    def test_the_pods_of_a_job_are_gated(self, control_plane, space):
        client = control_plane.client()
        template = builders.pod("of-a-job", namespace=space)
        job = {"metadata": {"name": "job"}, "spec": {"template": {"spec": template["spec"]}}}
        request(client, "POST", f"/apis/batch/v1/namespaces/{space}/jobs", job)

        (pod,) = workload.wait_until(
            lambda: workload.pods(client, labelSelector="batch.kubernetes.io/job-name=job"), 20, "the Job's pod"
        )

        assert gates(pod) == [HOLD]
        assert pod["spec"]["schedulerName"] == "dovetail"

    def test_gates_of_others_stay_beside_ours(self, gated):
        others = [{"name": "kueue.x-k8s.io/admission"}, {"name": "example.com/quota"}]

        found = gates(gated(spec={"schedulingGates": others}))

        assert sorted(it["name"] for it in found) == sorted(it["name"] for it in [*others, HOLD])

    def test_what_else_a_pod_says_is_left_as_it_is(self, control_plane, gated, space):
        told = {
            "cpu": 1,
            "labels": {"a": "b"},
            "annotations": {"dovetail.dev/duration": "3"},
            "demand": {"disk-read": 5},
        }
        ours = gated(**told)
        theirs = try_pod(control_plane.client(), builders.pod("tried", namespace=space, scheduler_name="other", **told))

        del ours["spec"]["schedulingGates"], ours["spec"]["schedulerName"], theirs["spec"]["schedulerName"]
        assert ours["spec"] == theirs["spec"]
        assert ours["metadata"]["labels"] == theirs["metadata"]["labels"]
        assert ours["metadata"]["annotations"] == theirs["metadata"]["annotations"]

    @pytest.mark.parametrize("labels", [{}, {"dovetail.dev/managed": "false"}])
    @pytest.mark.usefixtures("gated")
    def test_pods_of_other_namespaces_are_not_gated(self, control_plane, labels):
        with namespace(control_plane, f"free-{len(labels)}", labels) as space:
            pod = try_pod(control_plane.client(), builders.pod("tried", namespace=space))

        assert gates(pod) == []
        assert pod["spec"]["schedulerName"] == "default-scheduler"

    def test_a_pod_that_has_a_node_is_not_gated(self, gated):
        assert gates(gated(spec={"nodeName": "node-1"})) == []

    @pytest.mark.usefixtures("gated")
    def test_the_pods_of_a_daemon_set_are_not_gated(self, control_plane, space):
        client = control_plane.client()
        workload.create_nodes(client, [builders.node("node-1")])
        spec = builders.pod("daemon", namespace=space)["spec"]
        del spec["restartPolicy"]
        labels = {"labels": {"app": "daemon"}}
        selector = {"matchLabels": labels["labels"]}
        template = {"metadata": labels, "spec": spec}
        daemons = {"metadata": {"name": "daemon"}, "spec": {"selector": selector, "template": template}}
        request(client, "POST", DAEMONS, daemons)
        try:
            (pod,) = workload.wait_until(
                lambda: workload.pods(client, labelSelector="app=daemon"), 20, "the DaemonSet's pod"
            )
        finally:
            request(client, "DELETE", f"{DAEMONS}/daemon")

        assert not pod["spec"].get("nodeName")
        assert gates(pod) == []

    @pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical"])
    def test_what_the_cluster_cannot_be_without_is_not_gated(self, gated, name):
        assert gates(gated(spec={"priorityClassName": name})) == []

    @pytest.mark.usefixtures("priorities")
    def test_other_priorities_are_gated(self, gated):
        assert gates(gated(spec={"priorityClassName": "high"})) == [HOLD]

    def test_our_own_pods_are_not_gated(self, gated):
        assert gates(gated(labels={"app.kubernetes.io/name": "dovetail"})) == []

    def test_pods_of_another_scheduler_are_not_gated_and_keep_it(self, gated):
        pod = gated(scheduler_name="volcano")

        assert gates(pod) == []
        assert pod["spec"]["schedulerName"] == "volcano"

    def test_a_pod_can_opt_out_by_its_label(self, gated):
        pod = gated(labels={"dovetail.dev/managed": "false"})

        assert gates(pod) == []
        assert pod["spec"]["schedulerName"] == "default-scheduler"

    def test_a_pod_that_carries_our_gate_already_is_left_as_it_is(self, gated):
        pod = gated(spec={"schedulingGates": [HOLD]})

        assert gates(pod) == [HOLD]
        assert pod["spec"]["schedulerName"] == "default-scheduler"

    @pytest.mark.usefixtures("gated")
    def test_a_change_of_a_pod_brings_no_gate(self, control_plane, space):
        client = control_plane.client()
        workload.create_pods(client, [builders.pod("free", namespace=space, labels={"dovetail.dev/managed": "false"})])

        path = f"/api/v1/namespaces/{space}/pods/free"
        label = {"metadata": {"labels": {"dovetail.dev/managed": "true"}}}
        changed = request(client, "PATCH", path, label, content="application/merge-patch+json")

        assert gates(changed) == []


class TestForTheClustersOwnScheduler:
    """`mode: existing`."""

    @pytest.fixture(scope="class")
    @classmethod
    def tried(cls, control_plane):
        require_policies(control_plane)
        with namespace(control_plane, "gated-existing") as space, policy(control_plane, space, "existing"):
            yield lambda **told: try_pod(control_plane.client(), builders.pod("tried", namespace=space, **told))

    def test_a_plain_pod_is_gated_and_stays_with_the_default_scheduler(self, tried):
        pod = tried()

        assert gates(pod) == [HOLD]
        assert pod["spec"]["schedulerName"] == "default-scheduler"

    def test_a_pod_of_another_scheduler_is_not_gated(self, tried):
        assert gates(tried(scheduler_name="dovetail")) == []


def test_a_mirror_pod_is_not_gated(control_plane):
    """A mirror pod has a node, always: so the condition on the node is left out here, and this one must do alone."""
    require_policies(control_plane)
    mirror = {"annotations": {"kubernetes.io/config.mirror": "hash"}, "spec": {"nodeName": "node-1"}}

    def tried(space, **told):
        return try_pod(control_plane.client(), builders.pod("tried", namespace=space, **told))

    with namespace(control_plane, "mirrored") as space, policy(control_plane, space, without=["no-node-yet"]):
        with pytest.raises(RequestRefused, match="schedulingGates"):
            tried(space, spec=mirror["spec"])  # gated, which a pod with a node must not be
        pod = tried(space, **mirror)

    assert gates(pod) == []

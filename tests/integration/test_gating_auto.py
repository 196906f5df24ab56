"""Who gets the gate with `order: auto`: the chart's two policies and the kind Hold on a real API server."""

import re

import msgspec
import pytest

from extender.adapters.kube.api import Api
from extender.adapters.kube.gates import GateWriter
from extender.adapters.kube.objects import PodAnnotations
from extender.adapters.kube.writes import PodWriter
from extender.app.on_idle_room import way_back
from extender.cluster.pods.identity import GROUPS
from extender.control.drain import drain
from extender.control.drain_opportunistic import WayOut
from lab.controlplane import builders, workload
from lab.controlplane.rest import RequestRefused, request
from tests.integration.gating import (
    HOLD,
    HOLD_OBJECT,
    HOLDS,
    auto_policies,
    gates,
    hold_kind,
    is_gated,
    namespace,
    require_policies,
    try_pod,
    write_hold,
)

_ANNOTATIONS = {field.encode_name for field in msgspec.structs.fields(PodAnnotations)}


class TestForTheSecondScheduler:
    """`mode: scheduler`."""

    @pytest.fixture(scope="class")
    @classmethod
    def space(cls, control_plane):
        """Make a managed namespace, with the policies and without the kind."""
        require_policies(control_plane)
        with namespace(control_plane, "gated-auto") as name, auto_policies(control_plane, name):
            yield name

    @pytest.fixture(scope="class")
    @classmethod
    def kind(cls, control_plane, space):  # noqa: ARG003 - the policies come first
        """Have the kind served, without an object."""
        with hold_kind(control_plane):
            yield

    @pytest.fixture
    def tried(self, control_plane, space):
        """Return what tries a pod in the managed namespace."""
        return lambda **told: try_pod(control_plane.client(), builders.pod("tried", namespace=space, **told))

    def test_without_the_kind_pods_get_our_scheduler_and_no_gate(self, tried):
        pod = tried(cpu=1)

        assert gates(pod) == []
        assert pod["spec"]["schedulerName"] == "dovetail"

    @pytest.mark.parametrize("name", GROUPS)
    def test_whoever_names_a_gang_by_a_label_is_held_at_any_time(self, tried, name):
        pod = tried(labels={name: "g"})

        assert gates(pod) == [HOLD]
        assert pod["spec"]["schedulerName"] == "dovetail"

    @pytest.mark.parametrize("name", [name for name in GROUPS if name in _ANNOTATIONS])
    def test_whoever_names_a_gang_by_an_annotation_is_held_at_any_time(self, tried, name):
        assert gates(tried(annotations={name: "g"})) == [HOLD]

    def test_a_pod_that_only_waits_for_what_others_do_not_use_is_held_at_any_time(self, tried):
        assert gates(tried(annotations={"dovetail.dev/opportunistic": "only"})) == [HOLD]
        assert gates(tried(annotations={"dovetail.dev/opportunistic": "never"})) == []

    def test_a_pod_that_names_our_scheduler_costs_no_write_unless_it_is_held_at_any_time(self, control_plane, tried):
        def writes(**told):
            before = _writes(control_plane.client())
            pod = tried(scheduler_name="dovetail", **told)
            return len(gates(pod)), _writes(control_plane.client()) - before

        assert writes(cpu=1) == (0, 0)
        assert writes(labels={GROUPS[0]: "g"}) == (1, 1)

    def test_a_pod_with_a_gate_of_its_own_keeps_its_scheduler(self, tried):
        pod = tried(spec={"schedulingGates": [HOLD]})

        assert gates(pod) == [HOLD]
        assert pod["spec"]["schedulerName"] == "default-scheduler"

    @pytest.mark.usefixtures("kind")
    def test_without_an_object_pods_get_our_scheduler_and_no_gate(self, tried):
        pod = tried(cpu=1)

        assert gates(pod) == []
        assert pod["spec"]["schedulerName"] == "dovetail"

    @pytest.mark.usefixtures("kind")
    def test_pods_are_held_while_the_object_says_so(self, control_plane, space, tried):
        client = control_plane.client()

        write_hold(client, held=True)
        workload.wait_until(
            lambda: is_gated(client, space), 60, "pods to be held, by a kind that came after its policy"
        )
        held = tried(cpu=1)
        others = tried(spec={"schedulingGates": [{"name": "example.com/quota"}]})
        free = {"spec": {"held": False}}
        request(client, "PATCH", HOLD_OBJECT, free, content="application/merge-patch+json")
        workload.wait_until(lambda: not is_gated(client, space), 10, "pods to pass")
        passed = tried(cpu=1)

        assert held["spec"]["schedulerName"] == passed["spec"]["schedulerName"] == "dovetail"
        assert sorted(gate["name"] for gate in gates(others)) == ["dovetail.dev/hold", "example.com/quota"]
        assert gates(passed) == []

    @pytest.mark.usefixtures("kind")
    def test_pods_pass_once_the_object_that_held_them_is_deleted(self, control_plane, space):
        client = control_plane.client()
        write_hold(client, held=True)
        workload.wait_until(lambda: is_gated(client, space), 10, "pods to be held")

        request(client, "DELETE", HOLD_OBJECT)

        workload.wait_until(lambda: not is_gated(client, space), 10, "pods to pass")

    @pytest.mark.usefixtures("kind")
    def test_an_object_that_does_not_say_whether_is_refused(self, control_plane):
        body = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "Hold", "metadata": {"name": "odd"}, "spec": {}}

        with pytest.raises(RequestRefused, match=r"spec\.held"):
            request(control_plane.client(), "POST", HOLDS, body)


def test_drain_takes_both_policies_away_so_that_nobody_is_held_whatever_the_hold_says(control_plane):
    require_policies(control_plane)
    client = control_plane.client()
    api = Api(client)
    with hold_kind(control_plane), namespace(control_plane, "auto-drained") as name:
        write_hold(client, held=True)
        with auto_policies(control_plane, name):
            workload.wait_until(lambda: is_gated(client, name), 60, "pods to be held")
            workload.create_pods(client, [builders.pod("waits", namespace=name)])

            drained = drain(
                api, GateWriter(api), frozenset({"dovetail"}), WayOut(way_back(api), PodWriter(api), "promote")
            )

            (waiting,) = workload.pods(client)
            assert gates(waiting) == []
            workload.wait_until(lambda: not is_gated(client, name), 30, "new pods to pass")

    assert (drained.policies, drained.gates) == (("dovetail-gating", "dovetail-gating-backlog"), 1)
    assert drained.left == {}


def _writes(client):
    """Return how often the API server has written into an object for one of our policies."""
    text = client.rest_client.pool_manager.request("GET", f"{client.configuration.host}/metrics").data.decode()
    found = re.findall(r'^apiserver_mutating_admission_policy_check_total\{.*policy="dovetail-.*\} (\S+)$', text, re.M)
    return sum(map(float, found))

"""Gangs by Kubernetes' own PodGroups (Workload API, alpha in 1.36), on an API server that has them."""

import time

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.rest import request
from lab.controlplane.running import ControlPlane
from tests.integration.dovetail import control_on, dovetail_on, equal_nodes
from tests.integration.forking import fork_service

GROUPS = "scheduling.k8s.io/v1alpha2"
FLAGS = {"kube-apiserver": [f"--runtime-config={GROUPS}=true", "--feature-gates=GenericWorkload=true"]}


def test_a_pod_group_is_released_whole_or_not_at_all(programs, pytestconfig):
    if pytestconfig.getoption("--kubernetes") != "1.36":
        pytest.skip("PodGroups of scheduling.k8s.io are there from Kubernetes 1.36")
    with ControlPlane(programs, flags=FLAGS, starter=fork_service) as control_plane:
        client = control_plane.client()
        with dovetail_on(control_plane), control_on(control_plane):
            workload.create_nodes(client, equal_nodes(builders, 2))
            group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
            request(client, "POST", f"/apis/{GROUPS}/namespaces/default/podgroups", group)
            spec = {
                "schedulingGates": [{"name": "dovetail.dev/hold"}],
                "schedulingGroup": {"podGroupName": "g"},
            }
            members = [builders.pod(f"m-{n}", cpu=10, scheduler_name="dovetail", spec=spec) for n in range(3)]
            workload.create_pods(client, members)
            time.sleep(2)
            assert workload.bound_pods(client) == {}, "two fit, three do not"

            workload.create_nodes(client, [builders.node("third", cpu=16, memory="64Gi")])
            workload.wait_until(lambda: len(workload.bound_pods(client)) == 3, 20, "all three to be bound")

"""Manifests say what was asked for and nothing else."""

import json

from lab.controlplane import builders


def test_a_node_reports_the_same_capacity_and_allocatable_and_is_ready():
    node = builders.node("a", cpu=4, memory="8Gi", pods=10, extended={"nvidia.com/gpu": 2}, labels={"pool": "x"})
    offered = {"cpu": "4", "memory": "8Gi", "pods": "10", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "2"}
    assert node["status"]["capacity"] == node["status"]["allocatable"] == offered
    assert node["status"]["conditions"][0]["status"] == "True"
    assert node["metadata"]["labels"] == {"kubernetes.io/hostname": "a", "pool": "x"}
    assert "annotations" not in node["metadata"]


def test_a_nodes_disk_and_network_capacity_is_an_annotation():
    node = builders.node("a", capacity={"network-in": "125M"})
    assert json.loads(node["metadata"]["annotations"]["dovetail.dev/capacity"]) == {"network-in": "125M"}


def test_a_pod_carries_requests_demand_and_duration():
    pod = builders.pod("a", cpu="500m", memory="1Gi", demand={"disk-read": "1M"}, duration=12, scheduler_name="s")
    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "500m", "memory": "1Gi"}}
    assert json.loads(pod["metadata"]["annotations"]["dovetail.dev/demand"]) == {"disk-read": "1M"}
    assert pod["metadata"]["annotations"]["dovetail.dev/duration"] == "12"
    assert pod["spec"]["schedulerName"] == "s"
    assert "nodeName" not in pod["spec"]


def test_durations_are_written_plainly():
    durations = [builders.pod("a", duration=seconds)["metadata"]["annotations"] for seconds in (0.5, 1e-6, 10.0, 3600)]
    assert [told["dovetail.dev/duration"] for told in durations] == ["0.5", "0.000001", "10", "3600"]


def test_extended_resources_are_limits_too_as_the_api_demands():
    resources = builders.container(cpu=1, extended={"nvidia.com/gpu": 1})["resources"]
    assert resources == {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}


def test_keys_of_the_spec_can_be_replaced_and_added():
    pod = builders.pod("a", spec={"restartPolicy": "Always", "nodeSelector": {"pool": "x"}})
    assert (pod["spec"]["restartPolicy"], pod["spec"]["nodeSelector"]) == ("Always", {"pool": "x"})

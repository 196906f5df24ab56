"""What the playground consists of, as manifests."""

import json

import yaml

from extender import settings
from lab.playground.cluster import QUEUES, nodes, settings_manifests
from lab.playground.examples import pods


def test_every_node_declares_disk_and_network_and_has_a_name_of_its_own():
    manifests = nodes(26)
    assert [node["metadata"]["name"] for node in manifests[:2]] == ["node-a", "node-b"]
    assert len({node["metadata"]["name"] for node in manifests}) == 26
    capacity = json.loads(manifests[0]["metadata"]["annotations"]["dovetail.dev/capacity"])
    assert sorted(capacity) == ["disk-read", "disk-write", "network-in", "network-out"]


def test_the_config_map_holds_settings_that_are_valid_and_name_the_queues():
    namespace, config_map = settings_manifests("http://127.0.0.1:1")
    assert config_map["metadata"]["namespace"] == namespace["metadata"]["name"] == "dovetail-system"
    read = settings.read(config_map["data"]["dovetail.yaml"], "the ConfigMap")
    assert {queue.name: queue.weight for queue in read.declared_queues()} == QUEUES
    scheduler = yaml.safe_load(config_map["data"]["kube-scheduler.yaml"])
    assert [profile["schedulerName"] for profile in scheduler["profiles"]] == ["dovetail", "default-scheduler"]


def test_the_examples_of_the_three_queues_want_more_than_there_is():
    manifests = pods(30)
    cpus = sum(int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for pod in manifests)
    assert cpus > 6 * 8
    assert {pod["metadata"]["labels"]["dovetail.dev/queue"] for pod in manifests} == set(QUEUES)
    assert all(pod["spec"]["schedulingGates"] == [{"name": "dovetail.dev/hold"}] for pod in manifests)

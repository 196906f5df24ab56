"""Pods say what a user would declare, and each contender gets what is meant for it."""

import json

import msgspec

from extender.adapters.kube.decoding import pod_from
from extender.adapters.kube.objects import PodObject
from lab.controlplane.builders import CAPACITY
from lab.experiments.cluster.pods import DOVETAIL, PLAIN, RACK_LABEL, STOCK, Pods, node_manifests, node_names
from lab.live.schedulers import HOLD
from tests.lab.experiments.small_cluster import MACHINES, world

MAP, REDUCE = 1, 2


def manifest(row, who, given=None):
    there = world()
    return Pods(there.table, there.backlog.copies, node_names(MACHINES)).manifest(row, who, given or {})


def as_read(found):
    found = {**found, "metadata": {**found["metadata"], "uid": "1"}}
    return pod_from(msgspec.json.decode(json.dumps(found), type=PodObject))


def test_nodes_say_their_rack_and_their_disks_and_links():
    node = node_manifests(MACHINES)[2]
    assert node["metadata"]["name"] == "node-002"
    assert node["metadata"]["labels"][RACK_LABEL] == "rack-1"
    assert json.loads(node["metadata"]["annotations"][CAPACITY])["disk-read"] == "100"
    assert node["status"]["allocatable"]["cpu"] == "4000m"


def test_a_map_says_where_its_block_is_and_how_large():
    annotations = manifest(MAP, DOVETAIL)["metadata"]["annotations"]
    assert json.loads(annotations["dovetail.dev/input"]) == {"node-001": "600"}  # 40 bytes a second for 15 s
    assert json.loads(annotations["dovetail.dev/demand"]) == {"disk-read": "40"}


def test_a_reduce_declares_what_it_reads_as_network_and_has_no_input():
    annotations = manifest(REDUCE, DOVETAIL)["metadata"]["annotations"]
    assert json.loads(annotations["dovetail.dev/demand"]) == {"network-in": "30"}
    assert "dovetail.dev/input" not in annotations


def test_dovetail_reads_what_is_declared_and_kwok_does_not_end_the_pod_by_it():
    pod = as_read(manifest(MAP, DOVETAIL))
    assert (pod.duration, pod.tasks) == (15.0, 2)
    assert pod.demand == {"cpu": 1000.0, "memory": 8.0, "disk-read": 40.0, "pods": 1.0}
    assert pod.problem is None
    assert manifest(MAP, DOVETAIL)["metadata"]["annotations"]["dovetail.dev/duration"] == "15s"  # KWOK: bare numbers
    assert (pod.identity.queue, pod.identity.job) == ("research", "default/j")


def test_pods_are_held_where_they_are_given_a_gate():
    assert as_read(manifest(MAP, DOVETAIL, HOLD)).held
    assert not as_read(manifest(MAP, DOVETAIL)).held


def test_only_the_stock_schedulers_maps_prefer_the_nodes_of_their_block():
    (term,) = manifest(MAP, STOCK)["spec"]["affinity"]["nodeAffinity"].popitem()[1]
    assert term["weight"] == 100
    assert term["preference"]["matchExpressions"][0]["values"] == ["node-001"]
    for row, who in ((REDUCE, STOCK), (MAP, PLAIN), (MAP, DOVETAIL)):
        assert "affinity" not in manifest(row, who)["spec"]


def test_every_pod_has_a_name_of_its_own_that_says_its_task():
    there = world()
    assert Pods(there.table, there.backlog.copies, []).names == ["j-map-000", "j-map-001", "j-reduce1-000"]

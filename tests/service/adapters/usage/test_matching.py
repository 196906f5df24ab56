"""Whose a series is."""

import pytest

from extender.adapters.usage.matching import NodeNames
from extender.cluster.model import Node

NODES = [
    Node("node-a", {}, addresses=("10.0.0.1", "node-a.internal"), labels={"kubernetes.io/hostname": "host-a"}),
    Node("node-b", {}, addresses=("10.0.0.2", "fd00:0:0::2")),
    Node("10.0.0.9", {}, addresses=("10.0.0.3",)),
]


def find(nodes=NODES, labels=("node", "instance"), **series):
    return NodeNames(nodes, labels).find(series)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("node-a", "node-a"),
        ("10.0.0.1", "node-a"),
        ("10.0.0.1:9100", "node-a"),
        ("node-a:9100", "node-a"),
        ("node-a.internal:9100", "node-a"),
        ("host-a", "node-a"),
        ("fd00::2", "node-b"),
        ("[fd00::2]:9100", "node-b"),
        ("[fd00:0::0:2]", "node-b"),
        ("10.0.0.9", "10.0.0.9"),
        ("10.0.0.7:9100", None),
        ("node-a:metrics", None),
        ("", None),
    ],
)
def test_a_node_is_found_by_its_name_an_address_or_its_host_name_with_or_without_a_port(text, name):
    assert find(instance=text) == name


def test_the_first_label_that_names_a_node_counts():
    assert find(node="node-b", instance="10.0.0.1:9100") == "node-b"
    assert find(node="not-one-of-ours", instance="10.0.0.1:9100") == "node-a"
    assert find(labels=("nodename",), nodename="node-b", instance="10.0.0.1:9100") == "node-b"


def test_what_two_nodes_are_called_means_neither():
    twins = [Node("x", {}, addresses=("10.0.0.1",)), Node("y", {}, addresses=("10.0.0.1",))]
    assert find(twins, instance="10.0.0.1:9100") is None
    assert find(twins, instance="y") == "y"


def test_a_nodes_name_is_no_alias_of_another():
    assert find([Node("x", {}, addresses=("y",)), Node("y", {})], node="y") == "y"

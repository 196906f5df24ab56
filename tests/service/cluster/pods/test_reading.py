"""What a pod takes of which node, by where its input is; sums over all nodes are what it reads, to the byte."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.cluster.model import Pod
from extender.cluster.pods.reading import away, reading, sources, taken
from extender.cluster.pods.reading import given as beyond

HERE = ("a", "b", "c", "d")
DEMAND = {"cpu": 1000.0, "disk-read": 100.0, "disk-write": 7.0}


def reader(*holders, demand=DEMAND):
    return Pod("p", "default", "p", demand, inputs=tuple((name, 1000.0) for name in holders))


def test_on_a_node_that_holds_its_input_a_pod_takes_what_it_declares():
    assert taken(reader("a", "b"), "b", HERE) == {"b": DEMAND}


def test_elsewhere_it_takes_the_network_there_and_disks_and_links_of_the_holders_evenly():
    found = taken(reader("a", "b", "c"), "d", HERE)
    assert found["d"] == {"cpu": 1000.0, "disk-write": 7.0, "network-in": 100.0}
    assert [found[name]["disk-read"] for name in "abc"] == [34.0, 33.0, 33.0]
    assert all(found[name]["network-out"] == found[name]["disk-read"] for name in "abc")
    assert next(iter(found)) == "d"


def test_what_it_receives_besides_is_added():
    assert away(reader("a", demand={**DEMAND, "network-in": 5.0}))["network-in"] == 105.0


def test_holders_that_are_not_there_do_not_count():
    assert taken(reader("gone", "a"), "d", HERE)["a"] == {"disk-read": 100.0, "network-out": 100.0}
    assert sources(reader("gone", "a"), HERE) == ["a"]


@pytest.mark.parametrize(
    "pod",
    [reader(), reader("gone"), reader("a", demand={"cpu": 1.0})],
    ids=["no input", "an input on nodes that are not there", "an input of which it does not say how fast it reads it"],
)
def test_without_a_place_or_a_rate_all_that_is_declared_counts_on_the_pods_node(pod):
    assert taken(pod, "d", HERE) == {"d": pod.demand}
    assert sources(pod, HERE) == []


def test_only_a_pod_with_an_input_reads():
    assert (reading(reader("a")), reading(reader())) == (100.0, 0.0)


@given(rate=st.integers(1, 10**10), holders=st.integers(1, 4))
def test_what_is_read_from_all_holders_is_what_arrives_to_the_byte(rate, holders):
    found = taken(reader(*HERE[:holders], demand={"disk-read": float(rate)}), "z", (*HERE, "z"))
    own = found.pop("z")
    assert own["network-in"] == rate
    assert sum(part["disk-read"] for part in found.values()) == rate


def test_an_opportunistic_pod_takes_what_it_counts_and_is_given_the_rest_where_it_needs_it():
    demand = {**DEMAND, "a.b/gpu": 1.0}
    pod = replace(reader("a", demand=demand), opportunistic=True)
    assert taken(pod, "d", HERE) == {"d": {"a.b/gpu": 1.0}}
    assert beyond(pod, "d", HERE) == {
        "d": {"cpu": 1000.0, "disk-write": 7.0, "network-in": 100.0},
        "a": {"disk-read": 100.0, "network-out": 100.0},
    }
    assert beyond(pod, "a", HERE) == {"a": DEMAND}


def test_a_regular_pod_is_given_nothing():
    assert beyond(reader("a"), "d", HERE) == {}

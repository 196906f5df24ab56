"""What is asked."""

import re

import pytest

from extender.adapters.usage.queries import Queries
from extender.adapters.usage.templates import _CARDS, _DISKS, NAMES, NODES, PODS
from extender.cluster.resources import DIMENSIONS

DEFAULT = Queries(60, ("node", "instance"))


def test_there_is_a_template_for_each_dimension_and_for_times():
    assert set(NODES) == set(NAMES) == {*DIMENSIONS, "time"}
    assert set(PODS) == {*NAMES, "cpu-pressure"}


@pytest.mark.parametrize("name", DIMENSIONS)
@pytest.mark.parametrize("matchers", ["", 'cluster="prod"'])
def test_no_query_keeps_a_placeholder_and_each_selector_has_the_matchers(name, matchers):
    queries = Queries(60, ("node",), matchers)
    for query in (queries.of_dimension(name), queries.of_pods([("lab", "one")]), queries.of_times([("lab", "one")])):
        assert "$" not in query
        selectors = re.findall(r"\w\{(.*?)\}(?:\[|\)| -| |$)", query)
        assert selectors
        assert all(selector.endswith(matchers) for selector in selectors)
        assert ",}" not in query


def test_pods_are_asked_for_by_their_names_as_they_are():
    query = DEFAULT.of_pods([("b", "x.1"), ("a", "y"), ("a", "x.1")])
    assert r'namespace=~"a|b",pod=~"x\\.1|y"' in query


def test_a_template_of_settings_takes_the_place_of_ours_and_an_empty_one_is_not_asked():
    queries = Queries(30, ("node",), nodes={"cpu": "mine[$window]", "disk-read": ""}, pods={"disk-read": ""})
    assert queries.of_dimension("cpu").startswith('label_replace(mine[30s], "dovetail", "node", "", "") or ')
    assert queries.of_dimension("disk-read") == ""
    assert "container_fs_reads" not in queries.of_pods([("lab", "one")])


@pytest.mark.parametrize("disk", ["sda", "sdaa", "vdb", "xvda", "nvme0n1", "mmcblk0", "rbd0"])
def test_a_whole_disk_counts(disk):
    assert re.fullmatch(_DISKS, disk)


@pytest.mark.parametrize(
    "other", ["sda1", "nvme0n1p1", "mmcblk0p2", "dm-0", "md127", "loop3", "ram0", "zram0", "nvme0c0n1"]
)
def test_what_lies_on_a_disk_or_is_none_does_not(other):
    assert not re.fullmatch(_DISKS, other)


@pytest.mark.parametrize("card", ["eth0", "ens5", "enp3s0f1", "eno1", "enX0", "em1", "p2p1", "ib0", "wlan0"])
def test_a_network_card_counts(card):
    assert re.fullmatch(_CARDS, card)


@pytest.mark.parametrize(
    "other",
    ["lo", "veth1a2b", "cni0", "docker0", "bond0", "team0", "br-12ab", "eth0.100", "vlan100", "flannel.1", "cali12ab",
     "tunl0", "vxlan.calico", "cilium_host", "lxc12", "dummy0", "kube-ipvs0", "enP53091s1"],
)  # fmt: skip
def test_what_lies_on_a_card_or_is_none_does_not(other):
    assert not re.fullmatch(_CARDS, other)


def test_cpu_is_a_part_of_all_cpu_time_in_the_window_so_a_window_that_is_not_full_does_not_look_idle():
    busy, whole = DEFAULT.of_dimension("cpu").split(" or ")[0].split(" / ")
    assert 'rate(node_cpu_seconds_total{mode!~"idle|iowait"}[60s])' in busy
    assert whole.startswith(
        "sum without (cpu, mode) (rate(node_cpu_seconds_total{}[60s])) * count without (cpu, mode) "
    )


def test_a_node_has_a_time_once_there_was_a_sample_before_the_window_and_keeps_it_when_samples_stop():
    node = DEFAULT.of_times([]).split(', "dovetail"')[0]
    idle = 'node_cpu_seconds_total{mode="idle"}'
    before, stopped = f"last_over_time({idle}[60s] offset 60s)", f"({idle} unless last_over_time({idle}[60s]))"
    assert node.endswith(f"timestamp({idle}) and ({before} or {stopped}))")


def test_of_how_long_pods_wait_for_cpu_the_longest_on_each_node_counts_but_of_regular_ones_only():
    waits = DEFAULT.of_pressure([])
    assert waits.startswith("label_replace(max by (node, instance) (max by (namespace, pod, node, instance) (")
    assert "unless" not in waits
    query = DEFAULT.of_pressure([("b", "x.1"), ("a", "y")])
    # A namespace each: the pods b/y and a/x.1 are others.
    assert query.count('namespace=~"a",pod=~"y"') == query.count('namespace=~"b",pod=~"x\\\\.1"') > 0
    assert 'pod=~"y|' not in query


def test_what_a_containers_own_limit_holds_it_is_taken_off_its_waiting():
    waits = DEFAULT.of_pressure([])
    assert "clamp_min(" in waits
    assert waits.count("container_cpu_cfs_throttled_seconds_total") == 1
    assert waits.count("container_pressure_cpu_waiting_seconds_total") == 2


@pytest.mark.parametrize("matchers", ["", 'cluster="prod"'])
def test_the_query_for_waiting_keeps_no_placeholder_and_each_selector_has_the_matchers(matchers):
    query = Queries(60, ("node",), matchers).of_pressure([("lab", "one")])
    assert "$" not in query
    selectors = re.findall(r"_total\{(.*?)\}\[60s\]", query)
    assert len(selectors) == 6
    assert all(selector.endswith(matchers) for selector in selectors)


def test_a_template_of_settings_for_waiting_takes_the_place_of_ours_on_both_sides():
    query = Queries(30, ("node",), pods={"cpu-pressure": "mine{$pods}[$window]"}).of_pressure([("lab", "one")])
    assert query == (
        'label_replace(max by (node) ((mine{pod!=""}[30s]) unless on (namespace, pod)'
        ' ((mine{namespace=~"lab",pod=~"one"}[30s]))), "dovetail", "cpu-pressure", "", "")'
    )

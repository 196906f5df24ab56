"""Layouts: rows, columns, and what is not declared."""

import numpy as np
from numpy.testing import assert_array_equal

from extender.cluster.eligibility import Taint
from extender.cluster.events import NodeSeen, NodesListed
from extender.cluster.ledger.layout import UNADVERTISED as REST
from extender.cluster.ledger.layout import layout_of
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node
from extender.cluster.node_terms import HAS_SWAP, OpportunisticTerms
from extender.cluster.resources import DIMENSIONS

GPU, FPGA = "a.b/gpu", "a.b/fpga"


def nodes():
    return {
        "b": Node("b", {"cpu": 4000.0, "memory": 8.0, "network-in": 5.0}),
        "a": Node("a", {"cpu": 2000.0, "memory": 9.0, GPU: 1.0, FPGA: 2.0}),
    }


def test_rows_are_sorted_by_name_and_what_else_nodes_offer_comes_last_by_name():
    layout = layout_of(nodes())
    assert layout.names == ("a", "b")
    assert layout.rows == {"a": 0, "b": 1}
    assert layout.axis == ("cpu", "memory", "disk-read", "disk-write", "network-in", "network-out", FPGA, GPU, REST)
    assert [layout.columns[name] for name in layout.axis] == list(range(9))


def test_what_no_node_has_any_of_makes_no_column():
    layout = layout_of({"a": Node("a", {"cpu": 1.0, "hugepages-2Mi": 0.0})})
    assert layout.axis == (*DIMENSIONS, REST)


def test_disk_and_network_that_a_node_does_not_declare_are_unlimited_and_of_all_else_it_has_nothing():
    capacity = layout_of(nodes() | {"c": Node("c", {})}).capacity
    inf = np.inf
    assert capacity.tolist() == [
        [2000, 9, inf, inf, inf, inf, 2, 1, 0],
        [4000, 8, inf, inf, 5, inf, 0, 0, 0],
        [0, 0, inf, inf, inf, inf, 0, 0, 0],
    ]


def test_a_vector_adds_up_what_no_node_offers():
    layout = layout_of(nodes())
    asked = {"cpu": 1.0, GPU: 2.0, "x.y/z": 3.0, "hugepages-2Mi": 4.0, "x.y/none": 0.0}
    assert layout.unadvertised(asked) == ["x.y/z", "hugepages-2Mi"]
    assert layout.vector(asked).tolist() == [1, 0, 0, 0, 0, 0, 0, 2, 7]


def test_a_vector_looks_at_each_of_many_unknown_names_a_few_times():
    class Counted(dict):
        passes = 0

        def items(self):
            self.passes += 1
            return super().items()

    asked = Counted({f"x.y/z{n}": 1.0 for n in range(1000)})
    assert layout_of(nodes()).vector(asked)[-1] == 1000
    assert asked.passes <= 3


def test_the_vectors_of_many_amounts_are_those_of_each():
    layout = layout_of(nodes())
    asked = [{"cpu": 1.0}, {"x.y/z": 2.0}, {"cpu": 1.0}, {}]
    assert_array_equal(layout.vectors(asked), [layout.vector(amounts) for amounts in asked])
    assert layout.vectors([]).shape == (0, len(layout.axis))


def test_device_claims_may_bring_extended_resources_that_no_node_offers_and_no_others():
    layout = layout_of(nodes())
    asked = {GPU: 2.0, "x.y/z": 3.0, "hugepages-2Mi": 4.0, "device-claims": 1.0}
    assert layout.unadvertised(asked) == ["hugepages-2Mi"]
    assert layout.vector(asked).tolist() == [0, 0, 0, 0, 0, 0, 0, 2, 4]


def test_places_for_pods_count_only_where_a_node_says_how_many_it_has():
    nobody, one = layout_of(nodes()), layout_of(nodes() | {"c": Node("c", {"pods": 3.0})})
    assert nobody.vector({"pods": 1.0}).tolist() == [0] * 9
    assert one.vector({"pods": 1.0})[one.columns["pods"]] == 1
    assert one.capacity[:, one.columns["pods"]].tolist() == [0, 0, 3]


def test_places_for_pods_are_no_part_of_a_share_and_say_nothing_of_how_well_a_pod_suits_a_node():
    offers = {"cpu": 2.0, "memory": 4.0, "pods": 3.0, "ephemeral-storage": 5.0, "hugepages-2Mi": 6.0, GPU: 1.0}
    layout = layout_of({"a": Node("a", offers)})
    share_of = {name for name in offers if layout.total[layout.columns[name]] > 0}
    suits_by = {name for name in offers if np.isfinite(layout.packed[0, layout.columns[name]])}
    assert share_of == {"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", GPU}
    assert suits_by == {"cpu", "memory", GPU}


def test_a_node_that_does_not_declare_a_rate_counts_in_the_whole_cluster_like_the_mean_of_those_that_do():
    names, declared = ("a", "b", "c", "d"), {"a": {"network-in": 4.0}, "b": {"network-in": 6.0}}
    layout = layout_of({name: Node(name, {"cpu": 2.0, **declared.get(name, {})}) for name in names})
    assert layout.total[layout.columns["cpu"]] == 8
    assert layout.total[layout.columns["network-in"]] == 4 * (4 + 6) / 2
    assert layout.total[layout.columns["disk-read"]] == 0  # no node limits it


def test_a_layout_has_what_nodes_set_aside_and_the_thresholds_that_they_state_also_of_more_nodes():
    ledger = Ledger(in_flight_seconds=15.0)
    stated = Node("b", {"cpu": 2.0}, terms=OpportunisticTerms(threshold=0.5, system={"cpu": 7.0}))
    ledger.apply(NodesListed([Node("a", {"cpu": 1.0}), stated]))
    refusing = Node(
        "0", {"cpu": 3.0}, terms=OpportunisticTerms(threshold=0.9, refuses=HAS_SWAP, system={"memory": 5.0})
    )
    layout = ledger.snapshot(0.0).with_nodes([refusing]).layout
    assert_array_equal(layout.threshold, [np.nan, 0.5, 0.0])
    assert layout.system[:, :2].tolist() == [[0, 0], [7, 0], [0, 5]]


def test_a_node_that_changes_its_threshold_counts_by_the_new_one_at_once():
    ledger = Ledger(in_flight_seconds=15.0)
    ledger.apply(NodeSeen(Node("a", {"cpu": 1.0})))
    assert np.isnan(ledger.snapshot(0.0).layout.threshold[0])
    ledger.apply(NodeSeen(Node("a", {"cpu": 1.0}, terms=OpportunisticTerms(threshold=0.5))))
    assert ledger.snapshot(0.0).layout.threshold[0] == 0.5


def test_more_nodes_bring_their_soft_taints_and_leave_those_of_the_others():
    spot, slow = (Taint("key", value, "PreferNoSchedule") for value in ("spot", "slow"))
    ledger = Ledger(in_flight_seconds=15)
    ledger.apply(NodesListed([Node("a", {"cpu": 1.0}, taints=(spot,)), Node("b", {"cpu": 1.0})]))
    more = [Node("c", {"cpu": 1.0}, taints=(slow,)), Node("d", {"cpu": 1.0}, taints=(spot,))]
    soft = ledger.snapshot(0).with_nodes(more).layout.soft_taints
    assert {taints: rows.tolist() for taints, rows in soft.items()} == {(spot,): [0, 3], (slow,): [2]}

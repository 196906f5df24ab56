"""Many nodes looked up by their labels' values say what each says by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.cluster.eligibility import Constraints, Requirement, Taint, Toleration
from extender.cluster.labels import NodeLabels
from extender.cluster.model import Node
from tests.service.costs import lines_of

KEYS, VALUES = ("zone", "disk", "metadata.name"), ("a", "b", "7", "-12", "7 ", "n0")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near")

requirements = st.builds(
    Requirement,
    key=st.sampled_from(KEYS),
    operator=st.sampled_from(OPERATORS),
    values=st.lists(st.sampled_from(VALUES), max_size=2).map(tuple),
    field=st.booleans(),
)
terms = st.lists(st.lists(requirements, max_size=2).map(tuple), max_size=2).map(tuple)
taints = st.lists(
    st.builds(
        Taint,
        st.sampled_from(("gpu", "old")),
        st.sampled_from(("", "x")),
        st.sampled_from(("NoSchedule", "PreferNoSchedule")),
    ),
    max_size=2,
).map(tuple)
constraints = st.builds(
    Constraints,
    selector=st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES)), max_size=1).map(tuple),
    terms=st.none() | terms,
    tolerations=st.lists(
        st.builds(Toleration, st.sampled_from(("", "gpu")), st.sampled_from(("Exists", "Equal")), st.just("x")),
        max_size=1,
    ).map(tuple),
    volumes=st.lists(terms, max_size=2).map(tuple),
)
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2)


@st.composite
def clusters(draw):
    count = draw(st.integers(0, 5))
    return [
        draw(st.none())
        if draw(st.integers(0, 9)) == 0
        else Node(f"n{row}", {}, labels=draw(labels), taints=draw(taints), unschedulable=draw(st.booleans()))
        for row in range(count)
    ]


@given(clusters(), constraints)
def test_nodes_that_allow_a_pod_are_those_of_which_each_allows_it(nodes, pod):
    found = NodeLabels(nodes).allow(pod).tolist()
    assert found == [node is not None and node.allows(pod) for node in nodes]


@given(clusters(), constraints)
def test_nodes_where_volumes_can_be_used_are_those_where_each_can(nodes, pod):
    found = NodeLabels(nodes).hold(pod).tolist()
    assert found == [node is not None and pod.volumes_allow(node.labels) for node in nodes]


@given(clusters(), st.lists(st.tuples(st.integers(1, 100), st.lists(requirements, max_size=2).map(tuple)), max_size=3))
def test_nodes_weigh_what_each_weighs_by_itself(nodes, preferences):
    def weight(node):
        met = (much for much, term in preferences if term and all(it.met(node.name, node.labels) for it in term))
        return sum(met)

    found = NodeLabels(nodes).weights(tuple(preferences)).tolist()
    assert found == [weight(node) if node is not None else 0 for node in nodes]


def test_nodes_with_the_same_value_are_of_one_group_and_those_without_of_none():
    racks = ({"rack": "r1"}, {}, {"rack": "r2"}, {"rack": "r1"})
    found = NodeLabels([Node(f"n{row}", {}, labels=of) for row, of in enumerate(racks)]).groups("rack")
    assert found.tolist() == [0, -1, 1, 0]


@pytest.mark.parametrize("operator", ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
def test_a_requirement_costs_what_it_names_and_not_the_values_that_nodes_have(operator):
    nodes = NodeLabels([Node(f"n{row}", {}, labels={"host": str(row)}) for row in range(500)])
    # The first sorts the nodes by the value of the label.
    nodes.allow(Constraints(terms=((Requirement("host", "In", ("0",)), Requirement("host", "Gt", ("0",))),)))
    pod = Constraints(terms=((Requirement("host", operator, ("7",)),),))
    assert lines_of(lambda: nodes.allow(pod)) < 100


def test_pods_with_the_same_tolerations_go_over_the_taints_of_nodes_once():
    nodes = NodeLabels([Node(f"n{row}", {}, taints=(Taint("team", f"t{row}", "NoSchedule"),)) for row in range(500)])
    pods = [Constraints((("host", f"n{row}"),), tolerations=(Toleration("team", value="t7"),)) for row in range(9)]
    nodes.allow(pods[0])
    assert lines_of(lambda: [nodes.allow(pod) for pod in pods]) < 500


def test_what_is_kept_of_the_keys_that_pods_ask_for_is_bounded(monkeypatch):
    monkeypatch.setattr("extender.cluster.labels._MOST_KEPT", 3)
    labels = NodeLabels([Node("n0", {}, labels={"k7": "1"}), Node("n1", {})])
    for number in range(10):
        allowed = labels.allow(Constraints(selector=((f"k{number}", "1"),)))
        assert allowed.tolist() == [number == 7, False]
        assert len(labels._by_key) <= 3

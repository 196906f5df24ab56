import pytest

from extender.cluster.pods.preference import declared_input, holders
from extender.errors import BadAnnotation


def test_an_input_names_nodes_with_bytes_and_those_that_hold_nothing_are_left_out():
    found = declared_input('{"node-b": "128Mi", "node-a": 1000, "node-c": 0}')
    assert found == (("node-a", 1000.0), ("node-b", 128.0 * 2**20))


def test_a_pod_without_the_annotation_has_no_input():
    assert declared_input(None) == ()


@pytest.mark.parametrize(
    ("annotation", "says"),
    [
        ('["node-a"]', 'Expected `object`, got `array`; accepted: a JSON object of nodes and bytes such as {"node-a":'),
        ('{"node-a": "much"}', "node-a: 'much' is not a quantity; accepted: numbers such as 2"),
        ('{"node-a": -1}', "node-a: -1 is negative; accepted: zero or more"),
        ('{"node-a": {"copies": 3}}', "node-a: {'copies': 3} is not a quantity; accepted: numbers such as 2"),
        ('{"": 1}', "a node without a name; accepted: names of nodes"),
        ("{", "truncated"),
    ],
)
def test_a_broken_input_is_named_with_what_is_accepted_and_that_once(annotation, says):
    with pytest.raises(BadAnnotation) as error:
        declared_input(annotation)
    assert "annotation dovetail.dev/input: " in str(error.value)
    assert says in str(error.value)
    assert str(error.value).count("accepted: ") == 1


def test_an_input_on_more_nodes_than_are_accepted_is_refused():
    many = ",".join(f'"node-{number}": 1' for number in range(1_001))
    with pytest.raises(BadAnnotation, match="1001 nodes; accepted: at most 1000"):
        declared_input("{" + many + "}")


def test_nodes_with_at_least_half_as_much_as_any_count_as_having_the_input():
    assert holders((("a", 100.0), ("b", 50.0), ("c", 49.0))) == ["a", "b"]
    assert holders(()) == []

"""kube-scheduler's JSON."""

import json
from pathlib import Path

import numpy as np
import pytest

from extender.adapters.http import wire
from extender.adapters.kube.decoding import pod_from
from extender.errors import BadRequest

SAMPLES = Path(__file__).parents[4].parent / "shared" / "wire" / "samples"
DEEP = 100_000

POD = '"Pod": {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": []}}'


def samples():
    found = sorted(SAMPLES.glob("*-request.json"))
    return [
        pytest.param(path, id=path.name) for path in found if "filter" in path.name or "prioritize" in path.name
    ] or [pytest.param(None, marks=pytest.mark.skip(reason="the captured requests are not beside the checkout"))]


def body(*parts):
    return ("{" + ", ".join(parts) + "}").encode()


@pytest.mark.parametrize("path", samples())
def test_a_request_as_kube_scheduler_sent_it_is_read(path):
    sent = json.loads(path.read_bytes())
    asked = wire.decode(path.read_bytes())
    whole = (sent["Nodes"] or {}).get("items")
    assert list(asked.names) == (sent["NodeNames"] if whole is None else [n["metadata"]["name"] for n in whole])
    assert asked.names
    assert pod_from(asked.pod).name == sent["Pod"]["metadata"]["name"]
    assert pod_from(asked.pod).resource_version == int(sent["Pod"]["metadata"]["resourceVersion"])
    assert pod_from(asked.pod).demand["cpu"] > 0
    assert (asked.whole is None) == (whole is None)


@pytest.mark.parametrize("mode", ["cachetrue", "cachefalse"])
def test_a_preemption_as_kube_scheduler_sent_it_is_read_and_answered_as_it_understands(mode):
    path = SAMPLES / f"{mode}-preempt-1-request.json"
    if not path.exists():
        pytest.skip("the captured requests are not beside the checkout")
    asked = wire.decode_preemption(path.read_bytes())
    assert pod_from(asked.pod).priority == 1000
    assert sorted(asked.names) == [f"m{n:05d}" for n in range(4)]
    answered = json.loads((SAMPLES / f"{mode}-preempt-1-response.json").read_bytes())
    assert json.loads(wire.encode(wire.PreemptReply(asked.victims))) == answered


def test_names_only_and_whole_nodes_are_both_read():
    names = wire.decode(body(POD, '"Nodes": null', '"NodeNames": ["a", "b"]'))
    assert (list(names.names), names.whole) == (["a", "b"], None)
    node = '{"metadata": {"name": "a", "x": 1}}'
    whole = wire.decode(body(POD, f'"Nodes": {{"metadata": {{}}, "items": [{node}]}}', '"NodeNames": null'))
    assert list(whole.names) == ["a"]
    assert bytes(whole.whole[0]).decode() == node  # as it came, to be sent back
    assert wire.node_object(whole.whole[0]).metadata.name == "a"


def test_being_asked_about_no_node_is_fine():
    assert list(wire.decode(body(POD, '"NodeNames": []')).names) == []
    assert list(wire.decode(body(POD, '"Nodes": {"items": null}')).names) == []


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", "not ExtenderArgs"),
        (b"null", "not ExtenderArgs"),
        (b"[]", "not ExtenderArgs"),
        (b"{}", "Pod is missing"),
        (body('"Pod": null', '"NodeNames": []'), "Pod is missing"),
        (body(POD), "Nodes and NodeNames are both null"),
        (body(POD, '"Nodes": null', '"NodeNames": null'), "Nodes and NodeNames are both null"),
        (body(POD, '"NodeNames": "a"'), "$.NodeNames"),
        (body(POD, '"NodeNames": ["a", 1]'), "$.NodeNames[1]"),
        (body(POD, '"Nodes": {"items": [{"metadata": 5}]}'), "$.metadata"),
        (body('"Pod": {"spec": {"containers": [{"name": 1}]}}', '"NodeNames": []'), "$.Pod.spec.containers[0].name"),
        (body(POD, '"NodeNames": ["a"]')[:-4], "not ExtenderArgs"),
        (body(POD, '"NodeNames": ["a"]') + b"x", "not ExtenderArgs"),
        (b'{"Pod": {"metadata": {"name": "\xff"}}}', "not ExtenderArgs"),
        (b"\x00\xff\x00", "not ExtenderArgs"),
    ],
)
def test_a_body_that_is_wrong_is_refused_with_the_place(sent, said):
    with pytest.raises(BadRequest) as caught:
        wire.decode(sent)
    assert said in str(caught.value)


def test_every_truncation_of_a_request_is_refused():
    whole = body(POD, '"NodeNames": ["a", "b"]')
    for length in range(len(whole)):
        with pytest.raises(BadRequest):
            wire.decode(whole[:length])


@pytest.mark.parametrize(
    "sent",
    [
        "[" * DEEP,
        '{"a":' * DEEP,
        '{"Unknown": ' + "[" * DEEP + "]" * DEEP + "}",
        '{"Pod": ' * DEEP,
        '{"Pod": {"spec": {"containers": ' + "[" * DEEP,
        '{"Pod": {"spec": {"volumes": ' + "[" * DEEP + "]" * DEEP + '}}, "NodeNames": []}',
        '{"Pod": {}, "Nodes": {"items": [' + "[" * DEEP + "]" * DEEP + "]}}",
        '{"Pod": {}, "Nodes": {"items": [{"spec": ' + '{"a":' * DEEP + "1" + "}" * DEEP + "}]}}",
    ],
)
def test_deep_nesting_in_known_and_in_skipped_fields_is_refused(sent):
    with pytest.raises(BadRequest):
        wire.decode(sent.encode())


def test_nodes_named_more_than_once_are_refused_by_name():
    wire.require_once(["a", "b"])
    with pytest.raises(BadRequest, match="more than once: a, b; accepted: each node once"):
        wire.require_once(["b", "a", "c", "a", "b"])


def test_a_hundred_thousand_repeated_names_are_refused_at_once():
    with pytest.raises(BadRequest, match="n0, n1, n10, n100, n1000;"):
        wire.require_once([f"n{i}" for i in range(100_000)] * 2)


def test_a_filter_reply_has_gos_keys_and_nulls():
    reply = json.loads(wire.encode(wire.FilterReply(node_names=["a"], failed_and_unresolvable_nodes={"b": "why"})))
    assert reply == {
        "Nodes": None,
        "NodeNames": ["a"],
        "FailedNodes": None,
        "FailedAndUnresolvableNodes": {"b": "why"},
        "Error": "",
    }


def test_whole_nodes_go_back_as_they_came():
    node = '{"metadata": {"name": "a"}, "unknown":  [1.0]}'
    asked = wire.decode(body(POD, f'"Nodes": {{"items": [{node}]}}'))
    assert node.encode() in wire.encode(wire.FilterReply(nodes={"items": asked.whole}))


def test_scores_are_encoded_as_integers_in_the_order_of_the_rows():
    table = wire.ScoreTable(["a", 'quo"te', "c"])
    reply = table.encode(np.array([2, 1, 0]), np.array([10, 0, 3]), ["stranger"])
    assert b"." not in reply
    assert json.loads(reply) == [
        {"Host": "c", "Score": 10},
        {"Host": 'quo"te', "Score": 0},
        {"Host": "a", "Score": 3},
        {"Host": "stranger", "Score": 0},
    ]


def test_no_score_at_all_is_an_empty_array():
    nothing = np.array([], dtype=np.intp)
    assert wire.ScoreTable([]).encode(nothing, nothing) == b"[]"


def test_whole_nodes_that_are_no_text_are_refused_for_they_would_go_back_as_they_came():
    nodes = b'"Nodes": {"items": [{"metadata": {"name": "n", "annotations": {"a": "\x88"}}}]}'
    with pytest.raises(BadRequest, match=r"^the body is not ExtenderArgs: 'utf-8' codec can't decode byte 0x88"):
        wire.decode(b"{" + POD.encode() + b", " + nodes + b"}")

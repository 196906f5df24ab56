"""Parsers and decoders: whatever comes in, they answer, or raise what they declare; what they answer is in bounds."""

import json
import math
import re
from contextlib import suppress
from fractions import Fraction

import msgspec

from extender.adapters.http import wire
from extender.adapters.kube.decoding import group_from, owner_from, pod_from, version_number
from extender.adapters.kube.nodes import NodeObject, node_from
from extender.adapters.kube.objects import GroupObject, JobObject, PodObject, Selector
from extender.adapters.kube.templates import terms_from
from extender.cluster.labels import NodeLabels
from extender.cluster.model import CapacityRule
from extender.cluster.pods.demand import counted, declared, seconds
from extender.cluster.pods.identity import identify
from extender.cluster.pods.opportunistic import regular_requests
from extender.cluster.pods.preference import declared_input
from extender.cluster.resources import LARGEST, countable, io_amounts, parse_quantity
from extender.errors import BadAnnotation, BadQuantity, BadRequest
from tests.fuzz import draws
from tests.fuzz.broken import Broken, require
from tests.fuzz.kube_scheduler import allows

RULES = (CapacityRule({"rack": "a"}, {"disk-read": 100.0}), CapacityRule({}, {"network-in": 5.0}))
_CANNOT_BE_READ = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_POWERS = {suffix: Fraction(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_POWERS |= {suffix: Fraction(1000) ** power for power, suffix in enumerate("num kMGTPE", -3)}
_PLAIN = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]*)")


def quantities(random, _size):
    """A quantity is a whole amount in bounds, or is refused; what Kubernetes accepts is read as it reads it."""
    given, per_unit = draws.odd_quantity(random), random.choice((1, 1000))
    amount = _within_bounds(given, per_unit)
    plain = _PLAIN.fullmatch(given) if given.isascii() else None
    if plain and (plain[2] or " ") in _POWERS:
        exact = math.ceil(Fraction(plain[1]) * _POWERS[plain[2] or " "] * per_unit)
        require(amount == (exact if exact < LARGEST else None), "a quantity is read wrongly", f"{given!r}: {amount}")
    _within_bounds(draws.value(random), per_unit)


def annotations(random, _size):
    """An annotation of ours is read, to amounts in bounds, or refused as such."""
    for read, draw in ((declared, draws.rates), (declared_input, draws.inputs)):
        amounts = _read(read, draw(random))
        require(all(map(_in_bounds, dict(amounts or ()).values())), f"{read.__name__} is out of bounds", str(amounts))
    _read(declared_input, json.dumps(draws.value(random)))
    regular = _read(regular_requests, draws.requests(random))
    require(
        regular is None or regular_requests(regular.written()) == regular, "requests are not read back", str(regular)
    )
    told = _read(seconds, draws.annotation(random))
    require(told is None or 0 <= told <= 1e9, "seconds out of bounds", str(told))
    told = _read(counted, draws.number(random))
    require(told is None or 1 <= told <= 10**9, "tasks out of bounds", str(told))
    version_number(draws.odd_quantity(random))
    names = random.sample((*draws.LABELS, *draws.THEIRS), 3)
    identity = identify("ns", {name: draws.odd_quantity(random) for name in names}, owner="uid")
    require(identity.job and identity.queue and identity.least >= 0, "an identity lacks a part", str(identity))


def amounts(random, _size):
    """Requests and rates become amounts in bounds; only rates may be refused."""
    named = {random.choice((*draws.RESOURCES, draws.text(random))): draws.odd_quantity(random) for _ in range(3)}
    require(all(map(_in_bounds, countable(named).values())), "a request is out of bounds", str(named))
    try:
        rates = io_amounts({random.choice((*draws.RATES, "cpu")): draws.value(random) for _ in range(2)})
    except BadQuantity:
        return
    require(all(map(_in_bounds, rates.values())), "a rate is out of bounds", str(rates))


def objects(random, _size):
    """What the API server accepts is understood; no pod and no node ends the watch of all."""
    tree = draws.pod(random)
    pod = pod_from(msgspec.json.decode(json.dumps(tree), type=PodObject))
    require(all(map(_in_bounds, pod.demand.values())), "a demand is out of bounds", lambda: str(pod.demand))
    require(all(pod.demand.values()), "a demand of nothing is kept", lambda: str(pod.demand))
    nodes = [draws.node(random, name) for name in draws.NODES[:2]]
    known = [node_from(msgspec.json.decode(json.dumps(node), type=NodeObject), RULES) for node in nodes]
    for node in known:
        require(all(map(_in_bounds, node.allocatable.values())), "a capacity is out of bounds", str(node))
    told = NodeLabels([known[0], None, known[1]]).allow(pod.constraints).tolist()
    require(not told[1], "a node of which nothing is known is allowed")
    for node, seen, one_of_many in zip(nodes, known, (told[0], told[2]), strict=True):
        alone = seen.allows(pod.constraints)
        require(alone == one_of_many, "a node alone and one of many are judged differently", f"{tree} {node}")
        require(alone == allows(tree, node), "kube-scheduler and we differ in where a pod may go", f"{tree} {node}")


def wrong_objects(random, _size):
    """Objects and bytes gone wrong are refused as such, by the watch and by the verbs."""
    tree = draws.mutated(random, random.choice((draws.pod, draws.node))(random), random.choice((1, 1, 3)))
    body = json.dumps(tree).encode()
    body = draws.garbled(random, body) if random.random() < 0.5 else body
    kind, made = random.choice(_KINDS)
    with suppress(*_CANNOT_BE_READ):
        made(msgspec.json.decode(body, type=kind))
    asked = b'{"Pod":' + body + b',"NodeNames":["n0"],"NodeNameToMetaVictims":{"n0":{}}}'
    for decode in (wire.decode, wire.decode_preemption):
        with suppress(BadRequest):
            pod_from(decode(asked).pod)
    with suppress(BadRequest):
        for raw in wire.decode(b'{"Pod":{},"Nodes":{"items":[' + body + b"]}}").whole:
            node_from(wire.node_object(raw), RULES)


_KINDS = (
    (PodObject, pod_from),
    (NodeObject, lambda found: node_from(found, RULES)),
    (JobObject, owner_from),
    (GroupObject, lambda found: group_from(found, "groups")),
    (Selector, terms_from),
)


def _within_bounds(given, per_unit):
    try:
        amount = parse_quantity(given, per_unit=per_unit)
    except BadQuantity:
        return None
    require(_in_bounds(amount), "a quantity is out of bounds", f"{given!r}: {amount}")
    return amount


def _read(read, annotation):
    try:
        return read(annotation)
    except BadAnnotation as error:
        if len(str(error)) > 2_000 and len(annotation) > 2_000:
            raise Broken("a refusal repeats a long annotation", f"{len(annotation)} characters") from None
        return None


def _in_bounds(amount):
    return 0 <= amount < LARGEST and amount == int(amount)

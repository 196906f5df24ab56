"""No text that a user writes costs more than its length: patterns by their steps, code by its instructions."""

import importlib
import json
import pkgutil
import re
import sys
from collections import Counter
from re import _constants as code
from re import _parser as patterns

import msgspec
import pytest

import extender
from extender.adapters.kube.decoding import pod_from
from extender.adapters.kube.nodes import NodeObject, node_from
from extender.adapters.kube.objects import PodObject
from extender.cluster.eligibility import Constraints, Requirement
from extender.cluster.labels import NodeLabels
from extender.cluster.model import Node
from extender.cluster.pods.demand import counted, declared, seconds
from extender.cluster.pods.limits import LONGEST_INPUT, LONGEST_NAME, LONGEST_NUMBER, LONGEST_RATES
from extender.cluster.pods.preference import declared_input
from extender.cluster.resources import parse_quantity
from extender.errors import BadAnnotation, BadQuantity

ROOMS = ("adapters", "cluster", "control", "planner", "policy", "settings")


# -- patterns


class Steps:
    """Matches a whole text as `re` does, by going back, and counts the characters that it tries."""

    def __init__(self, pattern):
        self.tree = patterns.parse(pattern.pattern, pattern.flags)
        self.tried = 0

    def match(self, text):
        return any(end == len(text) for end in self._sequence(list(self.tree), 0, text))

    def _sequence(self, items, at, text):
        if not items:
            yield at
            return
        for end in self._one(items[0], at, text):
            yield from self._sequence(items[1:], end, text)

    def _one(self, item, at, text):
        kind, told = item
        if kind is code.SUBPATTERN:
            yield from self._sequence(list(told[3]), at, text)
        elif kind is code.BRANCH:
            for branch in told[1]:
                yield from self._sequence(list(branch), at, text)
        elif kind is code.MAX_REPEAT:
            yield from self._repeat(told, at, text)
        else:
            self.tried += 1
            if at < len(text) and re.fullmatch(pattern_of(item), text[at]):
                yield at + 1

    def _repeat(self, told, at, text, done=0):
        least, most, part = told
        if done < most:
            for end in self._sequence(list(part), at, text):
                if end > at:
                    yield from self._repeat(told, end, text, done + 1)
        if done >= least:
            yield at


def pattern_of(item):
    kind, told = item
    if kind is code.LITERAL:
        return re.escape(chr(told))
    if kind is code.IN:
        return "[" + "".join(map(member_of, told)) + "]"
    raise AssertionError(f"{kind} is not known here: count its steps too")


def member_of(member):
    kind, told = member
    if kind is code.LITERAL:
        return re.escape(chr(told))
    if kind is code.RANGE:
        return f"{re.escape(chr(told[0]))}-{re.escape(chr(told[1]))}"
    assert (kind, told) == (code.CATEGORY, code.CATEGORY_DIGIT), f"{kind} {told} is not known here"
    return "0-9"


def all_patterns():
    found = {}
    for module in pkgutil.walk_packages(extender.__path__, "extender."):
        if module.name.split(".")[1] in ROOMS:
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, re.Pattern):
                    found[value.pattern] = value
    return list(found.values())


@pytest.mark.parametrize("pattern", all_patterns(), ids=lambda pattern: pattern.pattern[:30])
@pytest.mark.parametrize("part", ["1", "1.", ".1", "a", "a-", "a.", "1e", "+1", "0x"])
@pytest.mark.parametrize("end", ["", "x!", "\n"])
def test_every_pattern_takes_a_bounded_number_of_steps_for_each_character(pattern, part, end):
    text = (part * 100)[:100] + end
    steps = Steps(pattern)
    assert steps.match(text) == bool(pattern.fullmatch(text)), "the count is of another match"
    assert steps.tried <= 6 * len(text)


def test_the_count_of_steps_tells_a_pattern_that_goes_back_and_forth():
    steps = Steps(re.compile(r"\d+\.?\d*", re.ASCII))
    assert not steps.match("1" * 100 + "x")
    assert steps.tried > 100 * 100 / 2


# -- lengths


@pytest.mark.parametrize(
    ("read", "longest", "text"),
    [
        (declared, LONGEST_RATES, '{"network-in": 1}'),
        (declared_input, LONGEST_INPUT, '{"node-a": 1}'),
        (seconds, LONGEST_NUMBER, "90"),
        (counted, LONGEST_NUMBER, "90"),
    ],
)
def test_an_annotation_has_a_longest_length(read, longest, text):
    fits = text.ljust(longest)
    assert read(fits)
    with pytest.raises(BadAnnotation, match=f"{longest + 1} characters; accepted: at most {longest}"):
        read(fits + " ")


def test_a_quantity_has_a_longest_length():
    assert parse_quantity("0." + "0" * (LONGEST_NUMBER - 3) + "1") == 1
    with pytest.raises(BadQuantity, match=r"a quantity of 65 characters; accepted: at most 64"):
        parse_quantity("1" * (LONGEST_NUMBER + 1))


class Unread(str):
    """A text of which nothing but its length may be asked."""

    __slots__ = ()

    def _asked(self, *_args):
        raise AssertionError("a parser got a text that is too long")

    __float__ = __int__ = __iter__ = __getitem__ = strip = encode = isascii = isdigit = startswith = _asked


@pytest.mark.parametrize("read", [declared, declared_input, seconds, counted])
@pytest.mark.parametrize("part", ["1", "[", '{"a":'])
def test_nothing_longer_reaches_a_parser(read, part):
    called = Counter()

    def note(_frame, event, function):
        if event == "c_call":
            called[function.__name__] += 1

    text = Unread(part * (LONGEST_INPUT + 1))
    sys.setprofile(note)
    try:
        with pytest.raises(BadAnnotation):
            read(text)
    finally:
        sys.setprofile(None)
    assert called["len"] >= 1
    assert not called.keys() & {"decode", "fullmatch", "match", "issuperset"}


def test_a_name_that_could_be_nobody_s_is_not_taken_and_said():
    name = "n" * (LONGEST_NAME + 1)
    pod = read_pod(annotations={"scheduling.k8s.io/group-name": name, "yunikorn.apache.org/queue": "root.a"})
    assert (pod.identity.group, pod.identity.queue) == ("", "root.a")
    assert pod.problem == "annotation scheduling.k8s.io/group-name: 254 characters; accepted: at most 253"


def test_what_is_told_of_a_broken_annotation_is_cut():
    pod = read_pod(annotations={"dovetail.dev/demand": json.dumps({"x" * 900: 1})})
    assert len(pod.problem) == 300
    assert pod.problem.endswith("...")


# -- the rest of a pod, by instructions


def read_pod(**metadata):
    return pod_from(msgspec.convert({"metadata": metadata}, PodObject))


def instructions(call):
    """Return how many instructions of Python a call takes, and how many names were compared."""
    count = 0

    def trace(frame, event, _told):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def containers(many):
    """Return so many containers of a resource each of its own, every other one an init container or a sidecar."""
    made = [{"name": f"c{n}", "resources": {"requests": {f"a.b/r{n}": "1", "cpu": "1"}}} for n in range(many)]
    sidecars = [{**it, "restartPolicy": "Always"} if n % 2 else it for n, it in enumerate(made)]
    return {"spec": {"containers": made, "initContainers": sidecars}}


SHAPES = {
    "containers": containers,
    "overhead": lambda many: {"spec": {"overhead": {f"a.b/r{n}": "1" for n in range(many)}}},
    "labels": lambda many: {"metadata": {"labels": {f"l{n}": "v" for n in range(many)}}},
    "owners": lambda many: {"metadata": {"ownerReferences": [{"uid": f"u{n}"} for n in range(many)]}},
    "tolerations": lambda many: {"spec": {"tolerations": [{"key": f"k{n}"} for n in range(many)]}},
    "selector": lambda many: {"spec": {"nodeSelector": {f"k{n}": "v" for n in range(many)}}},
    "volumes": lambda many: {"spec": {"volumes": [{"name": f"v{n}", "ephemeral": {}} for n in range(many)]}},
    "conditions": lambda many: {"status": {"conditions": [{"type": f"t{n}"} for n in range(many)]}},
    "statuses": lambda many: {"status": {"containerStatuses": [{"name": f"c{n}"} for n in range(many)]}},
    "inputs": lambda many: {
        "metadata": {"annotations": {"dovetail.dev/input": json.dumps({f"n{n}": n + 1 for n in range(many)})}}
    },
    "digits": lambda many: {"spec": {"overhead": {"cpu": "1" * many}}},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_reading_a_pod_four_times_as_large_takes_at_most_about_four_times_as_many_instructions(shape):
    few, many = (msgspec.convert(SHAPES[shape](count), PodObject) for count in (100, 400))
    assert instructions(lambda: pod_from(many)) <= 4.4 * instructions(lambda: pod_from(few))


class Compared(str):
    """A label's value that counts how often it is compared."""

    count = 0
    __slots__ = ()

    def __eq__(self, other):
        Compared.count += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("operator", ["In", "NotIn"])
def test_an_affinity_with_many_values_is_looked_up_not_compared_value_by_value(operator):
    labels = NodeLabels([Node(f"n{n}", {}, labels={"zone": f"z{n}"}) for n in range(50)])
    values = tuple(Compared(f"z{n}") for n in range(25, 2_025))
    Compared.count = 0
    allowed = labels.allow(Constraints(terms=((Requirement("zone", operator, values),),)))
    assert allowed.sum() == 25
    assert Compared.count <= 4 * len(values)


def test_a_node_s_annotation_has_the_same_limit_and_leaves_what_settings_say():
    raw = {"metadata": {"name": "n", "annotations": {"dovetail.dev/capacity": "1" * (LONGEST_RATES + 1)}}}
    node = node_from(msgspec.convert(raw, NodeObject), ())
    too_long = "annotation dovetail.dev/capacity: 1025 characters; accepted: at most 1024"
    assert node.problem == f"{too_long}; its capacity is taken from settings"

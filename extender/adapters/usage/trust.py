"""What can be believed of what was measured: node by node, values become samples or a problem.

A problem's text does not change from look to look while the problem is the same (no seconds in it).
"""

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from extender.adapters.usage.templates import PRESSURE, TIME
from extender.cluster.model import Node, Pod
from extender.cluster.resources import CPU, DIMENSIONS, IO_DIMENSIONS, MEMORY, Amounts
from extender.cluster.usage import Sample, Usage, samples_of

MOST_OFFERS, MOST_IO_OFFERS = 4.0, 10.0
"""A node that uses so many times what it offers is not believed. Declared rates of disks and cards are rougher."""

LARGEST = {CPU: 1e7, MEMORY: 1e15}
LARGEST_RATE = 1e13
"""What no node uses, whatever it offers: 10,000 cores in millicores, 1 PB, 10 TB/s."""

SKEW_SECONDS = 10.0
"""By so much clocks may differ; what is younger than now by more than this was measured by a wrong one."""

_PODS_ABOVE_NODE, _NOT_WORTH = 1.5, 0.1
"""Pods that use so many times the CPU of their whole node were counted twice, unless it is this little of the node."""

_MOST_PRESSURE = 1.1
"""Nobody waits for more than all of the time; a rate of a counter over a window is not exact."""

UNITS = {CPU: 1000.0}
"""What a unit of a series is in ours: a core is 1,000 millicores."""

Values = dict[str, list[float]]
"""Dimension, `TIME` or `PRESSURE` -> the values that were found; more than one: it was measured twice."""


@dataclass(slots=True)
class Tally:
    """What one look brought, by node and by pod's UID, before it is judged."""

    nodes: dict[str, Values] = field(default_factory=dict)
    pods_on: dict[str, Values] = field(default_factory=dict)
    pods: dict[str, Values] = field(default_factory=dict)
    pressure: dict[str, Values] = field(default_factory=dict)
    gone: dict[str, Values] = field(default_factory=dict)

    def put(self, whose: dict[str, Values], name_of: str, name: str, value: float) -> None:
        """Note a value: cores, bytes or bytes per second; seconds since the epoch; a part of the time."""
        whose.setdefault(name_of, {}).setdefault(name, []).append(value * UNITS.get(name, 1.0))


@dataclass(frozen=True, slots=True)
class SampleLimits:
    """What samples are judged by: now by our clock, the start of the window, the oldest sample that still counts.

    `rate_seconds` is over how long rates are means (`Usage`).
    """

    now: float
    since: float
    stale_seconds: float
    rate_seconds: float = 0.0


def judged(tally: Tally, nodes: Iterable[Node], pods: Iterable[Pod], terms: SampleLimits) -> Usage:
    """Return what can be believed; `pods` are those that were asked about.

    A node is measured where its CPU and memory are, and everything about it can be believed: the node itself, its pods
    together, and each opportunistic pod. Any other pod is left out by itself, and so is one that starts, as it has no
    raw sample yet, and one whose newest sample is old while the others of its node are not.
    """
    tally = replace(tally, pods_on=_begun(tally.pods_on), pods=_begun(tally.pods))
    asked = {pod.uid: pod for pod in pods}
    node_of = {uid: pod.node or "" for uid, pod in asked.items()}
    problems: dict[str, str] = {}
    offers = {node.name: node.allocatable for node in nodes}
    for name, amounts in offers.items():
        problem = _wrong_with_node(tally.nodes.get(name, {}), tally.pods_on.get(name), amounts, terms)
        if problem is not None:
            problems[name] = problem
    doubtful: set[str] = set()
    for uid, values in sorted(tally.pods.items()):
        node = node_of[uid]
        if node not in problems and (problem := wrong_with(values, offers.get(node, {}), terms)) is not None:
            is_stale = problem == _stale(terms.stale_seconds)  # its containers have ended: they wait to start again
            if asked[uid].opportunistic and not is_stale:
                problems[node] = f"a pod's {problem}"
            else:
                doubtful.add(uid)
    believed = offers.keys() - problems.keys()
    return Usage(
        nodes=_samples(tally.nodes, terms, believed),
        pods_on=_samples(tally.pods_on, terms, believed),
        pods=_samples(tally.pods, terms, {uid for uid in tally.pods if node_of[uid] in believed} - doubtful),
        pressure=_pressure(tally, believed),
        problems=problems,
        gone=_gone(tally.gone, node_of, {name: offers[name] for name in believed}),
        rate_seconds=terms.rate_seconds,
    )


def nothing(nodes: Iterable[Node], problem: str) -> Usage:
    """Return a use of which nothing is known, and why."""
    return Usage(problems=dict.fromkeys((node.name for node in nodes), problem))


def still_fresh(usage: Usage, now: float, stale_seconds: float, node_of: Mapping[str, str]) -> Usage:
    """Return the same use without what has become too old since it was judged.

    That is a node with its pods of `node_of` where its own sample has, or that of its pods together; a pod by itself.
    """
    oldest = now - stale_seconds
    if oldest_sample(usage) >= oldest:
        return usage
    old = {name for whose in (usage.nodes, usage.pods_on) for name, sample in whose.items() if sample.at < oldest}
    return replace(
        usage,
        nodes={name: sample for name, sample in usage.nodes.items() if name not in old},
        pods_on={name: sample for name, sample in usage.pods_on.items() if name not in old},
        pods={uid: one for uid, one in usage.pods.items() if one.at >= oldest and node_of.get(uid) not in old},
        pressure={name: part for name, part in usage.pressure.items() if name not in old},
        problems={**usage.problems, **dict.fromkeys(sorted(old), _stale(stale_seconds))},
        gone={name: amounts for name, amounts in usage.gone.items() if name not in old},
    )


def oldest_sample(usage: Usage) -> float:
    """Return the time of the oldest sample; infinite where there is none."""
    books = (usage.nodes, usage.pods_on, usage.pods)
    return float(min(samples_of(book).at.min(initial=math.inf) for book in books))


def wrong_with(values: Values, offers: Amounts, terms: SampleLimits) -> str | None:
    """Return why the values of a node, of its pods, or of a pod cannot be believed; None where they can."""
    doubled = next((name for name, amounts in values.items() if len(amounts) > 1), None)
    if doubled is not None:
        return f"{doubled} was measured twice: set usage.matchers, or correct the template"
    for name in DIMENSIONS:
        if name in values and (problem := _wrong_amount(name, values[name][0], offers)) is not None:
            return problem
    if TIME not in values:
        return "time is not known: there are no raw samples, or not for a whole window yet"
    at = values[TIME][0]
    if not math.isfinite(at) or at > terms.now + SKEW_SECONDS:
        return "newest sample is from the future: clocks differ"
    return _stale(terms.stale_seconds) if at < terms.now - terms.stale_seconds else None


def _wrong_with_node(values: Values, pods_on: Values | None, offers: Amounts, terms: SampleLimits) -> str | None:
    if not values:
        return NO_SERIES
    for name in (CPU, MEMORY):
        if name not in values:
            return f"{name} has no series"
    if (problem := wrong_with(values, offers, terms)) is not None:
        return problem
    if not values[CPU][0] or not values[MEMORY][0]:
        return "cpu or memory in use is exactly 0: what measures it stands still"
    if pods_on is None:
        return None
    if (problem := wrong_with(pods_on, offers, terms)) is not None:
        return f"pods' {problem}"
    pods_cpu, whole = pods_on.get(CPU, [0.0])[0], values[CPU][0]
    if pods_cpu > _PODS_ABOVE_NODE * whole and pods_cpu - whole > _NOT_WORTH * offers.get(CPU, 0.0):
        return "pods use far more cpu than the whole node: they are counted twice"
    return None


NO_SERIES = "no series: nothing measures this node"
"""The problem of a node of which nothing was said."""


def _wrong_amount(name: str, amount: float, offers: Amounts) -> str | None:
    if not math.isfinite(amount):
        return f"{name} is not a number"
    if amount < 0:
        return f"{name} is negative"
    most = (MOST_IO_OFFERS if name in IO_DIMENSIONS else MOST_OFFERS) * offers.get(name, math.inf)
    if amount > min(most, LARGEST.get(name, LARGEST_RATE)):
        return f"{name} is absurd: far more than there is"
    return None


def _stale(stale_seconds: float) -> str:
    return f"newest sample is older than {stale_seconds:g} s"


def _begun(tally: Mapping[str, Values]) -> dict[str, Values]:
    """Return those of which there are raw samples: a sandbox has a network before any container runs."""
    return {who: values for who, values in tally.items() if TIME in values}


def _pressure(tally: Tally, believed: Set[str]) -> dict[str, float]:
    """Return for which part of the time somebody waits for CPU, by node; all else about a node stays as it is.

    It has the window of the node's pods, so without these it is not known.
    """
    by_node = {name: values[PRESSURE] for name, values in tally.pressure.items() if name in tally.pods_on}
    return {
        name: parts[0]
        for name, parts in by_node.items()
        if name in believed and len(parts) == 1 and 0.0 <= parts[0] <= _MOST_PRESSURE
    }


def _gone(tally: Mapping[str, Values], node_of: Mapping[str, str], offers: Mapping[str, Amounts]) -> dict[str, Amounts]:
    """Return what each of these nodes' sums over pods hold of pods that have ended, as far as it is sound."""
    total: dict[str, dict[str, float]] = {}
    for uid, values in sorted(tally.items()):
        node = node_of[uid]
        for name, amounts in values.items():
            sound = name in DIMENSIONS and node in offers and len(amounts) == 1
            if sound and _wrong_amount(name, amounts[0], offers[node]) is None:
                of_node = total.setdefault(node, {})
                of_node[name] = of_node.get(name, 0.0) + amounts[0]
    return dict(total)


def _samples(tally: Mapping[str, Values], terms: SampleLimits, believed: Set[str]) -> dict[str, Sample]:
    return {
        who: Sample(
            {name: values[name][0] for name in DIMENSIONS if name in values},
            min(terms.since, values[TIME][0]),
            values[TIME][0],
        )
        for who, values in tally.items()
        if who in believed
    }

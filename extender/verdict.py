"""One pod and a Snapshot in; which nodes may take it, with reasons, and how they rank, out.

Joins `cluster` (what there is) and `policy` (what is good). Pure: the verbs and the benchmarks
call this.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Counts, Floats, Mask, Rows, read_only, short_of, some
from extender.cluster.ledger.flights import charge, charge_given
from extender.cluster.ledger.layout import UNADVERTISED, Layout
from extender.cluster.ledger.mix import Mix
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.pods.preference import holders
from extender.cluster.pods.reading import away, sources
from extender.policy.alignment import RULES, Offered, fullness, offered, room
from extender.policy.levels import best, levels
from extender.policy.locality import penalised, remote_factor
from extender.policy.stranding import StrandedMore, sought, usual_pods, weight_of_sought


@dataclass(frozen=True, slots=True)
class Placement:
    """How nodes are ranked for a pod. `remote_penalty`: the part of its score that a node without its input loses."""

    rule: str = "cosine"
    shape_step: float = 0.05
    remote_penalty: float = 0.1


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the filter found, for every node of the snapshot [N] that it was asked about.

    `short` [N] is the dimension (an index into `dimensions`) that would be over-allocated, -1 where the pod fits; of
    nodes that it was not asked about it says nothing. `missing` is what no node advertises of what the pod asks for, if
    anything.
    """

    dimensions: Sequence[str]
    short: NDArray[np.intp]
    missing: str

    @property
    def passed(self) -> NDArray[np.bool_]:
        """Where the pod fits [N]."""
        return self.short < 0

    def reasons(self) -> list[str]:
        """Return the text of a refusal for each dimension; no quantity in it: a changed text wakes the pod at once."""
        return [f"insufficient {self.missing if name == UNADVERTISED else name}" for name in self.dimensions]

    def refusals(self, rows: Rows) -> Mapping[str, int]:
        """Return how many of these nodes were refused for which dimension."""
        dimensions, counts = np.unique(self.short[rows], return_counts=True)
        return {self.dimensions[d]: int(n) for d, n in zip(dimensions, counts, strict=True) if d >= 0}


@dataclass(frozen=True, slots=True)
class Standing:
    """How a pod stands in the order: `waits` is why it has to wait, None where its turn has come.

    `node` is the one that was chosen for it, None where any of `among` the snapshot's [N] will do, or, where that is
    None as well, any at all. The text of a wait is one of few, and stays the same while nothing changes: a changed text
    wakes the pod at once.
    """

    waits: str | None = None
    node: str | None = None
    among: NDArray[np.bool_] | None = None


_FEW = 4
"""Where one node in so many is asked about, or fewer, only these are judged and scored."""


def judge(snapshot: Snapshot, pod: Pod, rows: Rows | None = None, *, in_flight: bool = True) -> Judgement:
    """Return where the pod fits in every dimension that it demands (Tetris, 3.2: only tasks that fit are candidates).

    A dimension that the pod does not demand refuses nobody, however full it is. Of several short dimensions the first
    along the axis is named. With `in_flight` false, as if no pod in flight arrived anywhere. The nodes of these `rows`
    [K] are asked about, -1 where one is unknown, or all.
    """
    layout, count = snapshot.layout, len(snapshot.layout.names)
    demand, load = demand_on(layout, pod), _load(snapshot, pod)
    missing = next(iter(layout.unadvertised(pod.demand)), "")
    if rows is None or len(rows) * _FEW >= count:
        free = layout.capacity - load
        if in_flight and snapshot.flights:
            free -= snapshot.in_flight
        return Judgement(layout.axis, _first_short(free, demand), missing)
    free = layout.capacity[rows] - load[rows]
    if in_flight and snapshot.flights:
        free -= snapshot.in_flight[rows]
    short = np.zeros(count, dtype=np.intp)
    short[rows] = _first_short(free, demand if demand.ndim == 1 else demand[rows])
    return Judgement(layout.axis, short, missing)


def _first_short(free: Floats, demand: Floats) -> NDArray[np.intp]:
    """Return the first dimension of which each node [K, R] has too little for a demand [R] or [K, R]; -1 for none."""
    over = short_of(free, demand)
    return np.where(some(over), over.argmax(axis=1), -1)


def withheld(layout: Layout, pod: Pod, rows: Rows) -> Mask:
    """Say which of these nodes [K] an opportunistic pod may not get, whatever it counts there.

    It counts next to nothing, so it would fit anywhere. It may go only to the node that it was promised: there somebody
    looked at the use.
    """
    promised = layout.rows.get(pod.promised or "")
    return np.ones(len(rows), dtype=np.bool_) if promised is None else np.asarray(rows != promised)


def soft_taints(layout: Layout, pod: Pod) -> Counts | None:
    """Return how many soft taints each node has that the pod does not tolerate [N]; None where no node has any."""
    if not layout.soft_taints:
        return None
    counts = np.zeros(len(layout.names), dtype=np.int64)
    for taints, rows in layout.soft_taints.items():
        counts[rows] = sum(not any(one.tolerates(taint) for one in pod.constraints.tolerations) for taint in taints)
    return counts


def demand_on(layout: Layout, pod: Pod) -> Floats:
    """Return what the pod takes of a node [R], or of each [N, R] where it reads its input from those that hold it.

    That is what it counts as regular: of an opportunistic pod what no resize frees.
    """
    demand, there = layout.vector(pod.counted), sources(pod, layout.rows)
    if pod.opportunistic or not there:
        return demand
    each = np.tile(layout.vector(away(pod)), (len(layout.names), 1))
    each[[layout.rows[name] for name in there]] = demand
    return each


def room_for(snapshot: Snapshot, pod: Pod) -> Floats:
    """Return what each node has for this pod [N, R]: below 0 where it is promised more than once."""
    return np.asarray(snapshot.layout.capacity - _load(snapshot, pod) - snapshot.in_flight)


def once_gone(snapshot: Snapshot, victims: Mapping[str, Iterable[Pod]]) -> Snapshot:
    """Return the snapshot as if each of these nodes were rid of its victims, for `judge`.

    Only a pod that holds the node it is named for frees anything there, and that once.
    """
    layout, allocated, given = snapshot.layout, snapshot.allocated.copy(), snapshot.given.copy()
    for name in victims.keys() & layout.rows.keys():
        for pod in {pod.uid: pod for pod in victims[name] if pod.holds == name}.values():
            charge(allocated, layout, pod, name, -1.0)
            charge_given(given, layout, pod, name, -1.0)
    return replace(snapshot, allocated=read_only(allocated), given=read_only(given))


STRANDED_STEP = 0.1
"""Stranded devices are counted in steps of so much of one: of nodes on one step the shape decides."""


class Suitability(NamedTuple):
    """How nodes [K] suit a pod: how many steps of devices it strands there, the rule's score, and how full they are."""

    strands: Counts
    score: Floats
    full: Floats


class Ranker:
    """Ranks nodes for pods by one rule; keeps what changes only with the nodes."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self._last: tuple[Layout, Offered] | None = None
        self._last_stranded: tuple[Layout, Mix, StrandedMore] | None = None

    def rank(self, snapshot: Snapshot, pod: Pod, rows: Rows) -> NDArray[np.int64]:
        """Return a level 0..10 for each of these nodes [K], the best 10.

        First comes where the pod strands the fewest devices, then the best shape, then the fuller node.
        """
        suits = self.suitability(snapshot, pod, rows)
        return levels(suits.score, suits.full, step=self.placement.shape_step, strands=suits.strands)

    def best(self, snapshot: Snapshot, pod: Pod, rows: Rows) -> Rows:
        """Return those of these nodes [K], at least one, that nothing tells apart from the first [1..K].

        Nodes with fewer soft taints that the pod does not tolerate come before all others, as kube-scheduler has it.
        """
        repels = soft_taints(snapshot.layout, pod)
        if repels is not None:
            rows = rows[repels[rows] == repels[rows].min()]
        suits = self.suitability(snapshot, pod, rows)
        first = best(suits.score, suits.full, step=self.placement.shape_step, strands=suits.strands)
        return np.asarray(rows[first])

    def suitability(self, snapshot: Snapshot, pod: Pod, rows: Rows) -> Suitability:
        """Return how each of these nodes [K] suits the pod.

        A node that does not hold the pod's input loses a part of its score (Tetris, 3.2). What is in flight to one of
        many nodes is left out: it would only blur which one is full. Where most nodes are asked about all are scored,
        as picking out scores is cheaper than picking out nodes.
        """
        layout, nodes, load = snapshot.layout, self._offered(snapshot.layout), _load(snapshot, pod)
        # 1. Take all nodes, or only those few that are asked about.
        few = len(rows) * _FEW < len(layout.names)
        nodes, load = (nodes.at(rows), load[rows]) if few else (nodes, load)
        if snapshot.flights:
            load = load + (snapshot.placed[rows] if few else snapshot.placed)
        # 2. Score them.
        free = room(load, nodes)
        scores = RULES[self.placement.rule](layout.vector(pod.demand), free, nodes)
        if there := [layout.rows[name] for name in holders(pod.inputs) if name in layout.rows]:
            remote = np.ones(len(layout.names), dtype=np.bool_)
            remote[there] = False
            remote = remote[rows] if few else remote
            scores = penalised(scores, remote_factor(remote, penalty=self.placement.remote_penalty))
        full = fullness(free, nodes)
        # 3. Count the devices that the pod would strand.
        strands = self._strands(snapshot, pod, free, rows if few else None)
        return Suitability(strands, scores, full) if few else Suitability(strands[rows], scores[rows], full[rows])

    def stranded(self, snapshot: Snapshot, pod: Pod, rows: Rows) -> Floats:
        """Return how many devices more are lost to usual pods, with this one on each of these nodes [K]."""
        layout, load = snapshot.layout, _load(snapshot, pod) + snapshot.placed
        return self._more_stranded(snapshot, pod, room(load[rows], self._offered(layout).at(rows)), rows)

    def _strands(self, snapshot: Snapshot, pod: Pod, free: Floats, rows: Rows | None) -> Counts:
        """Return by how many steps of devices a pod strands more on these nodes [K], or on all, with so much `free`."""
        return np.rint(self._more_stranded(snapshot, pod, free, rows) / STRANDED_STEP).astype(np.int64)

    def _more_stranded(self, snapshot: Snapshot, pod: Pod, free: Floats, rows: Rows | None) -> Floats:
        if not len(snapshot.mix.count):
            return np.zeros(len(free))
        return self._stranded(snapshot.layout, snapshot.mix)(snapshot.layout.vector(pod.demand), free, rows)

    def _stranded(self, layout: Layout, mix: Mix) -> StrandedMore:
        last = self._last_stranded
        if last is None or last[0] is not layout or last[1] is not mix:
            offered = layout.capacity[:, mix.devices]
            weight = weight_of_sought(mix.asked.sum(axis=0), offered.sum(axis=0))
            by_others = weight * sought(mix.asked, mix.may, offered)
            more = StrandedMore(usual_pods(mix.demand, mix.count, mix.devices), by_others)
            last = self._last_stranded = (layout, mix, more)
        return last[2]

    def _offered(self, layout: Layout) -> Offered:
        last = self._last
        if last is None or last[0] is not layout:
            last = self._last = (layout, offered(layout.packed))
        return last[1]


def _load(snapshot: Snapshot, pod: Pod) -> Floats:
    nominated = snapshot.nominations.load(snapshot.allocated.shape, priority=pod.priority, uid=pod.uid)
    return snapshot.allocated if nominated is None else snapshot.allocated + nominated

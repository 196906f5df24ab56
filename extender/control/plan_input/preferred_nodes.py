"""Where pods would rather run, as the planner's arrays: which nodes hold their input, which racks and zones there are.

A pod's preferred places are the nodes of its `dovetail.dev/input`, else those that its node affinity prefers most, else
the one node of its local volumes. A class whose pods name their inputs is one row for the planner, whatever each of
them reads (`Blocks`), and others for those that may use none of their nodes: they read from these over the network, or,
where none is there, who knows where.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Counts, Mask, Rows
from extender.cluster.eligibility import Constraints
from extender.cluster.labels import NodeLabels
from extender.cluster.ledger.snapshot import Layout
from extender.cluster.model import Pod
from extender.cluster.pods.preference import Inputs, Preferences, holders
from extender.cluster.waiting import Blocks
from extender.control.backlog.backlog import Backlog, TaskClass
from extender.control.plan_input.allowed_nodes import AllowedNodes

NODE, ANYWHERE = "node", "anywhere"

_KEPT_BESIDES = 10
"""So many preferences more than two for each class are kept, before those that nobody has any more are forgotten."""


@dataclass(frozen=True, slots=True)
class Read:
    """Waiting pods of a class: the tasks of `blocks`, in their order; None where they may use nobody's node.

    Without blocks they read over the network where `afar`, from nodes that are there but not for them to run on.
    """

    pods: Sequence[Pod]
    blocks: Blocks | None
    afar: bool = False

    def only(self, uids: Collection[str]) -> "Read":
        """Return the same with only these pods waiting."""
        if self.blocks is None:
            return replace(self, pods=[pod for pod in self.pods if pod.uid in uids])
        gone = [task for task, pod in enumerate(self.pods) if pod.uid not in uids]
        return Read(self.pods, self.blocks.without(np.array(gone, dtype=np.intp))) if gone else self

    @property
    def waiting(self) -> int:
        """How many of them wait."""
        return len(self.pods) if self.blocks is None else int(self.blocks.waiting.sum())

    @property
    def suffix(self) -> str:
        """What sets their row's name apart from those of the same class that read otherwise."""
        return "" if self.blocks is not None else "|afar" if self.afar else "|nowhere"


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept of a class, and of which pods: what each reads, whether it is held, the rows of its holders."""

    of: Mapping[str, tuple[Inputs, bool]]
    holders: Mapping[str, Sequence[int]]
    reads: Sequence[Read]


class PreferredNodes:
    """Answers for the classes of a backlog; `labels` are the labels of nodes that make levels. One thread."""

    def __init__(self, backlog: Backlog, nodes: AllowedNodes, labels: Sequence[str]) -> None:
        self.level_names = (NODE, *_short(labels))
        self._backlog, self._nodes, self._level_labels = backlog, nodes, labels
        self._for: NodeLabels | None = None
        self._topology: Rows | None = None
        self._preferred: dict[tuple[Preferences, Constraints], Counts | None] = {}
        self._kept: dict[TaskClass, _Kept] = {}

    def topology(self, layout: Layout) -> Rows | None:
        """Return in which group of each level each node is [L, N], -1 for none; None without levels."""
        self._settle(layout)
        return self._topology

    def level_name(self, level: int) -> str:
        """Return what a level is called."""
        return self.level_names[level] if level < len(self.level_names) else ANYWHERE

    def reads(self, of: TaskClass, layout: Layout) -> Sequence[Read] | None:
        """Return the waiting pods of a class by what is known of their inputs; None for a class that declares none."""
        if not of.like.inputs:
            return None
        self._settle(layout)
        waiting = self._backlog.waiting_pods(of)
        kept = self._kept.get(of)
        now = {pod.uid: (pod.inputs, pod.held) for pod in waiting}
        if kept is None or any(kept.of.get(uid) != it for uid, it in now.items()):
            there = {uid: self._holders(uid, it, kept, layout) for uid, it in now.items()}
            kept = self._kept[of] = _Kept(now, there, self._read(of, waiting, there, layout))
        found = (it.only(now.keys()) for it in kept.reads)
        return [it for it in found if it.waiting]

    def forget_but(self, classes: Collection[TaskClass]) -> None:
        """Keep nothing but what is known of these classes."""
        self._kept = {of: self._kept[of] for of in classes if of in self._kept}
        if len(self._preferred) > 2 * len(classes) + _KEPT_BESIDES:
            wanted = {(of.like.prefers, of.like.constraints) for of in classes}
            self._preferred = {by: levels for by, levels in self._preferred.items() if by in wanted}

    def levels(self, pod: Pod, layout: Layout) -> Counts | None:
        """Return how far each node is from those that the pod's affinity prefers, else from its local volumes [N].

        None where there are none, or all nodes are alike. A pod's volumes are known by `Backlog.pod`.
        """
        if pod.inputs or not (pod.prefers or pod.constraints.volumes):
            return None
        self._settle(layout)
        by = (pod.prefers, pod.constraints)
        if by not in self._preferred:
            near = self._most_preferred(pod, layout) if pod.prefers else self._near_volumes(pod, layout)
            self._preferred[by] = self._distance(near)
        return self._preferred[by]

    def of_pod(self, pod: Pod, layout: Layout) -> Counts | None:
        """Return how far each node is from where one pod would rather be [N]; None where it is all the same."""
        if not pod.inputs:
            return self.levels(pod, layout)
        self._settle(layout)
        return self._distance(_holding(pod, layout))

    def as_planned(self, pod: Pod, layout: Layout) -> Counts | None:
        """Return the same as a plan has it: nodes with its input that one pod cannot use do not count."""
        if not pod.inputs:
            return self.levels(pod, layout)
        self._settle(layout)
        return self._distance(_holding(pod, layout) & self._nodes.usable(pod, layout))

    def level_on(self, pod: Pod, layout: Layout, node: int) -> str:
        """Return what the level of a start on a node is called, as a plan would; empty where it is all the same."""
        levels = self.as_planned(pod, layout)
        return "" if levels is None else self.level_name(int(levels[node]))

    def _settle(self, layout: Layout) -> None:
        """Take the nodes as they are now; what is kept of others is forgotten."""
        labels = self._nodes.labels(layout)
        if labels is not self._for:
            self._for = labels
            self._kept.clear()
            self._preferred.clear()
            groups = [labels.groups(label) for label in self._level_labels]
            self._topology = np.array(groups) if groups else None

    def _holders(self, uid: str, now: tuple[Inputs, bool], kept: _Kept | None, layout: Layout) -> Sequence[int]:
        """Return the rows of the nodes that hold a pod's input: as they are kept, if it is still the same input."""
        if kept is not None and kept.of.get(uid) == now:
            return kept.holders[uid]
        return [layout.rows[name] for name in holders(now[0]) if name in layout.rows]

    def _read(
        self, of: TaskClass, pods: Sequence[Pod], holding: Mapping[str, Sequence[int]], layout: Layout
    ) -> Sequence[Read]:
        """Return what pods read; a node where they may not run, or that is too small for them, does not count."""
        usable = self._nodes.usable(of.like, layout).tolist()
        there = [holding[pod.uid] for pod in pods]
        rows = [[row for row in known if usable[row]] for known in there]
        near = [task for task, found in enumerate(rows) if found]
        copies = np.full((len(near), max((len(rows[task]) for task in near), default=0)), -1, dtype=np.intp)
        for place, task in enumerate(near):
            copies[place, : len(rows[task])] = rows[task]
        blocks = Blocks(copies, np.ones(len(near), dtype=np.bool_), len(layout.names)) if near else None
        afar = [pod for pod, known, found in zip(pods, there, rows, strict=True) if known and not found]
        nowhere = [pod for pod, known in zip(pods, there, strict=True) if not known]
        return [Read([pods[task] for task in near], blocks), Read(afar, None, afar=True), Read(nowhere, None)]

    def _most_preferred(self, pod: Pod, layout: Layout) -> Mask:
        """Return the nodes that a pod prefers most of those that it may use; none where these are all alike."""
        allowed, weights = self._nodes.allowed(pod, layout), self._nodes.labels(layout).weights(pod.prefers)
        most, least = weights.max(initial=0, where=allowed), weights.min(initial=2**31, where=allowed)
        return np.asarray(allowed & (weights == most) & (least < most))

    def _near_volumes(self, pod: Pod, layout: Layout) -> Mask:
        """Return the node of a pod's local volumes; nowhere where they can be used on more than one."""
        found = self._nodes.labels(layout).hold(pod.constraints)
        return np.asarray(found & (found.sum() == 1))

    def _distance(self, near: Mask) -> Counts | None:
        """Return how many levels each node is from the nearest of these [N]; None without any, or if all are."""
        if not near.any() or near.all():
            return None
        groups = np.empty((0, len(near)), dtype=np.intp) if self._topology is None else self._topology
        found = np.full(len(near), len(groups) + 1, dtype=np.int64)
        for level in range(len(groups) - 1, -1, -1):
            found[(groups[level] >= 0) & np.isin(groups[level], groups[level][near])] = level + 1
        found[near] = 0
        return found


def _holding(pod: Pod, layout: Layout) -> Mask:
    """Return which nodes hold a pod's input [N]."""
    found = np.zeros(len(layout.names), dtype=np.bool_)
    found[[layout.rows[name] for name in holders(pod.inputs) if name in layout.rows]] = True
    return found


def words_of(level: str) -> str:
    """Return how people say that a pod starts at this level."""
    return "not near its input" if level == ANYWHERE else f"{level}-local"


def _short(labels: Sequence[str]) -> Sequence[str]:
    """Return the last parts of labels; the whole of those that would be called like another."""
    last = [label.rpartition("/")[2] for label in labels]
    taken = [NODE, ANYWHERE, *last]
    return [short if taken.count(short) == 1 else label for short, label in zip(last, labels, strict=True)]

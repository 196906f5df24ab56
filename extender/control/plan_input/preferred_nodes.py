"""Where pods would rather run, as the planner's arrays: which nodes hold their input, which racks and zones there are.

A pod prefers the nodes of its `dovetail.dev/input`, else those that its node affinity prefers most, else the one node
of its local volumes. A class whose pods declare inputs has up to three rows (`Read`): the pods that may run on a node
with their input, whatever each of them reads (`Blocks`); those that may run on none of these nodes, and read over the
network; and those whose nodes do not exist, of which nobody knows where they read.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Counts, Mask, Rows
from extender.cluster.eligibility import Constraints
from extender.cluster.labels import NodeLabels
from extender.cluster.ledger.layout import Layout
from extender.cluster.model import Pod
from extender.cluster.pods.preference import InputHolders, Preferences, holders
from extender.cluster.waiting import Blocks
from extender.control.backlog.backlog import Backlog, TaskClass
from extender.control.plan_input.allowed_nodes import AllowedNodes

NODE, ANYWHERE = "node", "anywhere"

_KEPT_BESIDES = 10
"""So many preferences more than two for each class are kept before those that no class has any more are forgotten."""

_MOST_KEPT = 4_096
"""So many preferences are kept at most where nobody says which classes there are: filter asks about single pods."""


@dataclass(frozen=True, slots=True)
class Read:
    """Waiting pods of a class that read alike. With `blocks`, the `pods` are its tasks, in their order.

    Without blocks no node with their input exists.
    """

    pods: Sequence[Pod]
    blocks: Blocks | None

    def only(self, uids: Collection[str]) -> "Read":
        """Return the same with only the pods of these UIDs waiting."""
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
        """What sets their row's name apart from the other rows of the class."""
        if self.blocks is None:
            return "|nowhere"
        return "|afar" if self.blocks.afar else ""


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept of a class: the `pods` by UID (what each reads, and whether it is held), the rows of the nodes with
    their input by UID, and what was made of both.
    """  # noqa: D205 - one sentence

    pods: Mapping[str, tuple[InputHolders, bool]]
    holders: Mapping[str, Sequence[int]]
    reads: Sequence[Read]


class PreferredNodes:
    """Answers for the classes of a backlog; `labels` are the labels of nodes that make levels. One thread."""

    def __init__(self, backlog: Backlog, nodes: AllowedNodes, labels: Sequence[str]) -> None:
        self.level_names = (NODE, *_short(labels))
        self._backlog, self._nodes, self._level_labels = backlog, nodes, labels
        self._labels: NodeLabels | None = None
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

    def reads(self, task_class: TaskClass, layout: Layout) -> Sequence[Read] | None:
        """Return the waiting pods of a class by how they read their inputs; None for a class that declares none."""
        if not task_class.template.inputs:
            return None
        self._settle(layout)
        waiting = self._backlog.waiting_pods(task_class)
        kept = self._kept.get(task_class)
        pods = {pod.uid: (pod.inputs, pod.held) for pod in waiting}
        if kept is None or any(kept.pods.get(uid) != inputs for uid, inputs in pods.items()):
            holding = {uid: self._holders(uid, inputs, kept, layout) for uid, inputs in pods.items()}
            kept = _Kept(pods, holding, self._read(task_class, waiting, holding, layout))
            self._kept[task_class] = kept
        reads = (read.only(pods.keys()) for read in kept.reads)
        return [read for read in reads if read.waiting]

    def forget_but(self, classes: Collection[TaskClass]) -> None:
        """Keep nothing but what is known of these classes."""
        self._kept = {task_class: self._kept[task_class] for task_class in classes if task_class in self._kept}
        if len(self._preferred) > 2 * len(classes) + _KEPT_BESIDES:
            templates = (task_class.template for task_class in classes)
            keys = {(pod.prefers, pod.constraints) for pod in templates}
            self._preferred = {key: levels for key, levels in self._preferred.items() if key in keys}

    def levels(self, pod: Pod, layout: Layout) -> Counts | None:
        """Return how many levels each node is from those that the pod's affinity prefers, else from its volumes [N].

        None where there are none, or all nodes are alike. Only pods from the backlog say where their volumes are.
        """
        if pod.inputs or not (pod.prefers or pod.constraints.volumes):
            return None
        self._settle(layout)
        key = (pod.prefers, pod.constraints)
        if key not in self._preferred:
            if len(self._preferred) >= _MOST_KEPT:
                self._preferred.clear()
            near = self._most_preferred(pod, layout) if pod.prefers else self._near_volumes(pod, layout)
            self._preferred[key] = self._distance(near)
        return self._preferred[key]

    def of_pod(self, pod: Pod, layout: Layout) -> Counts | None:
        """Return how many levels each node is from where a pod would rather run [N]; None if all are alike."""
        if not pod.inputs:
            return self.levels(pod, layout)
        self._settle(layout)
        return self._distance(_holding(pod, layout))

    def as_planned(self, pod: Pod, layout: Layout) -> Counts | None:
        """Return the same as a plan counts it: nodes with the pod's input that it cannot use do not count."""
        if not pod.inputs:
            return self.levels(pod, layout)
        self._settle(layout)
        return self._distance(_holding(pod, layout) & self._nodes.usable(pod, layout))

    def level_on(self, pod: Pod, layout: Layout, node: int) -> str:
        """Return the name of the level at which a pod starts on a node; empty where it makes no difference."""
        levels = self.as_planned(pod, layout)
        return "" if levels is None else self.level_name(int(levels[node]))

    def _settle(self, layout: Layout) -> None:
        """Take the nodes as they are now; what was kept is forgotten when one has changed."""
        labels = self._nodes.labels(layout)
        if labels is not self._labels:
            self._labels = labels
            self._kept.clear()
            self._preferred.clear()
            groups = [labels.groups(label) for label in self._level_labels]
            self._topology = np.array(groups) if groups else None

    def _holders(
        self, uid: str, inputs: tuple[InputHolders, bool], kept: _Kept | None, layout: Layout
    ) -> Sequence[int]:
        """Return the rows of the nodes with a pod's input: as they were kept, if its input is still the same."""
        if kept is not None and kept.pods.get(uid) == inputs:
            return kept.holders[uid]
        return [layout.rows[name] for name in holders(inputs[0]) if name in layout.rows]

    def _read(
        self, task_class: TaskClass, pods: Sequence[Pod], holding: Mapping[str, Sequence[int]], layout: Layout
    ) -> Sequence[Read]:
        """Return how pods read. Of the nodes with its input a pod reads where it may run and fits, else from any."""
        usable = self._nodes.usable(task_class.template, layout).tolist()
        near: list[tuple[Pod, Sequence[int]]] = []
        afar: list[tuple[Pod, Sequence[int]]] = []
        nowhere: list[Pod] = []
        for pod in pods:
            rows = holding[pod.uid]
            if there := [row for row in rows if usable[row]]:
                near.append((pod, there))
            elif rows:
                afar.append((pod, rows))
            else:
                nowhere.append(pod)
        return [_reading(near, layout), _reading(afar, layout, afar=True), Read(nowhere, None)]

    def _most_preferred(self, pod: Pod, layout: Layout) -> Mask:
        """Return the nodes that a pod prefers most, of those that it may use [N]; none where it prefers all alike."""
        allowed, weights = self._nodes.allowed(pod, layout), self._nodes.labels(layout).weights(pod.prefers)
        most, least = weights.max(initial=0, where=allowed), weights.min(initial=2**31, where=allowed)
        return np.asarray(allowed & (weights == most) & (least < most))

    def _near_volumes(self, pod: Pod, layout: Layout) -> Mask:
        """Return the one node of a pod's local volumes [N]; none where they can be used on several nodes."""
        nodes = self._nodes.labels(layout).hold(pod.constraints)
        return np.asarray(nodes & (nodes.sum() == 1))

    def _distance(self, near: Mask) -> Counts | None:
        """Return how many levels each node is from the nearest of these [N]; None where these are no nodes, or all."""
        if not near.any() or near.all():
            return None
        groups = np.empty((0, len(near)), dtype=np.intp) if self._topology is None else self._topology
        distance = np.full(len(near), len(groups) + 1, dtype=np.int64)
        for level in range(len(groups) - 1, -1, -1):  # from the widest level inwards: the nearest overwrites
            distance[(groups[level] >= 0) & np.isin(groups[level], groups[level][near])] = level + 1
        distance[near] = 0
        return distance


def _reading(pods: Sequence[tuple[Pod, Sequence[int]]], layout: Layout, *, afar: bool = False) -> Read:
    """Return how pods read, each from one of the nodes (rows) beside it."""
    copies = np.full((len(pods), max((len(rows) for _, rows in pods), default=0)), -1, dtype=np.intp)
    for task, (_, rows) in enumerate(pods):
        copies[task, : len(rows)] = rows
    blocks = Blocks(copies, np.ones(len(pods), dtype=np.bool_), len(layout.names), afar=afar)
    return Read([pod for pod, _ in pods], blocks)


def _holding(pod: Pod, layout: Layout) -> Mask:
    """Return which nodes hold a pod's input [N]."""
    nodes = np.zeros(len(layout.names), dtype=np.bool_)
    nodes[[layout.rows[name] for name in holders(pod.inputs) if name in layout.rows]] = True
    return nodes


def words_of(level: str) -> str:
    """Return the words for a start at this level."""
    return "not near its input" if level == ANYWHERE else f"{level}-local"


def _short(labels: Sequence[str]) -> Sequence[str]:
    """Return the last parts of labels, or the whole label where two have the same last part."""
    last = [label.rpartition("/")[2] for label in labels]
    taken = [NODE, ANYWHERE, *last]
    return [short if taken.count(short) == 1 else label for short, label in zip(last, labels, strict=True)]

"""Where pods would rather run, as the planner's arrays: which nodes hold their input, which racks and zones there are.

A pod's preferred places are the nodes of its `dovetail.dev/input`, else those that its node affinity prefers most, else
those on which its volumes can be used, where not all are. A class whose pods name their inputs is one row for the
planner, whatever each of them reads (`Blocks`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.cluster.eligibility import Terms
from extender.cluster.model import Pod
from extender.cluster.preference import Inputs, Preferences, holders, most_preferred, weight
from extender.cluster.snapshot import Layout
from extender.cluster.waiting import Blocks
from extender.control.backlog import Backlog, TaskClass

Rows = NDArray[np.intp]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]
Volumes = tuple[Terms, ...]

NODE, ANYWHERE = "node", "anywhere"

_PREFERENCES_KEPT = 10
"""So many preferences more than two for each class are kept, before those that nobody has any more are forgotten."""


@dataclass(frozen=True, slots=True)
class Read:
    """What the waiting pods of a class read: `pods` are the tasks of `blocks`, None where nobody's node is there."""

    pods: Sequence[Pod]
    blocks: Blocks | None


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept of a class, and of which pods: what each reads, and whether it is held."""

    of: Mapping[str, tuple[Inputs, bool]]
    read: Read


class Places:
    """Answers for the classes of a backlog; `labels` are the labels of nodes that make levels. One thread."""

    def __init__(self, backlog: Backlog, labels: Sequence[str]) -> None:
        self.level_names = (NODE, *(label.rpartition("/")[2] for label in labels))
        self._backlog, self._labels = backlog, labels
        self._for: tuple[Layout, int] | None = None
        self._topology: Rows | None = None
        self._preferred: dict[Preferences | Volumes, Counts | None] = {}
        self._kept: dict[TaskClass, _Kept] = {}

    def settle(self, layout: Layout) -> None:
        """Take the nodes as they are now; what is kept of others is forgotten."""
        version = self._backlog.nodes_version
        if self._for is None or self._for[0] is not layout or self._for[1] != version:
            if self._for is None or self._for[0].names != layout.names:
                self._kept.clear()
            self._for = (layout, version)
            self._preferred.clear()
            self._topology = self._groups(layout) if self._labels else None

    @property
    def topology(self) -> Rows | None:
        """In which group of each level each node is [L, N], -1 for none; None without levels."""
        return self._topology

    def level_name(self, level: int) -> str:
        """Return what a level is called."""
        return self.level_names[level] if level < len(self.level_names) else ANYWHERE

    def read(self, of: TaskClass, layout: Layout) -> Read | None:
        """Return what the waiting pods of a class read; None for a class without declared inputs."""
        if not of.like.inputs:
            return None
        waiting = self._backlog.waiting_pods(of)
        kept = self._kept.get(of)
        now = {pod.uid: (pod.inputs, pod.held) for pod in waiting}
        if kept is None or any(kept.of.get(uid) != it for uid, it in now.items()):
            kept = self._kept[of] = _Kept(now, _read(waiting, layout))
        return _only(kept.read, now.keys())

    def forget_but(self, classes: Sequence[TaskClass]) -> None:
        """Keep nothing but what is known of these classes."""
        self._kept = {of: self._kept[of] for of in classes if of in self._kept}
        if len(self._preferred) > 2 * len(classes) + _PREFERENCES_KEPT:
            wanted = {_prefers(of.like) for of in classes}
            self._preferred = {by: levels for by, levels in self._preferred.items() if by in wanted}

    def levels(self, pod: Pod, layout: Layout) -> Counts | None:
        """Return how far each node is from those that the pod's affinity prefers, else from its local volumes [N].

        None where there are none, or all nodes are alike. A pod's volumes are known by `Backlog.pod`.
        """
        by = _prefers(pod)
        if pod.inputs or not by:
            return None
        if by not in self._preferred:
            near = self._most_preferred(pod.prefers, layout) if pod.prefers else self._near_volumes(pod, layout)
            self._preferred[by] = self._distance(near)
        return self._preferred[by]

    def of_pod(self, pod: Pod, layout: Layout) -> Counts | None:
        """Return how far each node is from where one pod would rather be [N]; None where it is all the same."""
        if not pod.inputs:
            return self.levels(pod, layout)
        near = np.zeros(len(layout.names), dtype=np.bool_)
        near[[layout.rows[name] for name in holders(pod.inputs) if name in layout.rows]] = True
        return self._distance(near)

    def _most_preferred(self, preferences: Preferences, layout: Layout) -> Mask:
        nodes = (self._backlog.nodes.get(name) for name in layout.names)
        found = [weight(preferences, node.name, node.labels) if node is not None else 0 for node in nodes]
        most = most_preferred(found)
        return np.array([it == most for it in found], dtype=np.bool_)

    def _near_volumes(self, pod: Pod, layout: Layout) -> Mask:
        """Return the node of a pod's local volumes; nowhere where they can be used on more than one."""
        nodes = (self._backlog.nodes.get(name) for name in layout.names)
        found = [node is not None and pod.constraints.volumes_allow(node.labels) for node in nodes]
        return np.array(found, dtype=np.bool_) & (sum(found) == 1)

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

    def _groups(self, layout: Layout) -> Rows:
        groups = np.full((len(self._labels), len(layout.names)), -1, dtype=np.intp)
        for level, label in enumerate(self._labels):
            rows: dict[str, int] = {}
            for column, name in enumerate(layout.names):
                node = self._backlog.nodes.get(name)
                value = node.labels.get(label) if node is not None else None
                if value is not None:
                    groups[level, column] = rows.setdefault(value, len(rows))
        return groups


def _prefers(pod: Pod) -> Preferences | Volumes:
    return pod.prefers or pod.constraints.volumes


def words_of(level: str) -> str:
    """Return how people say that a pod starts at this level."""
    return "not near its input" if level == ANYWHERE else f"{level}-local"


def _read(pods: Sequence[Pod], layout: Layout) -> Read:
    """Return what pods read. One whose nodes are all unknown can read anywhere alike, so every node has its input."""
    nodes = [[layout.rows[name] for name in holders(pod.inputs) if name in layout.rows] for pod in pods]
    if not any(nodes):
        return Read(pods, None)
    known = [rows or list(range(len(layout.names))) for rows in nodes]
    copies = np.full((len(pods), max(map(len, known))), -1, dtype=np.intp)
    for task, rows in enumerate(known):
        copies[task, : len(rows)] = rows
    return Read(pods, Blocks(copies, np.ones(len(pods), dtype=np.bool_), len(layout.names)))


def _only(read: Read, uids: Collection[str]) -> Read:
    """Return the same with only these pods waiting."""
    if read.blocks is None or len(uids) == len(read.pods):
        return read
    gone = [task for task, pod in enumerate(read.pods) if pod.uid not in uids]
    return Read(read.pods, read.blocks.without(np.array(gone, dtype=np.intp)))

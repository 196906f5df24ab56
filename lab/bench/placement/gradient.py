"""Fragmentation Gradient Descent, as published: the baseline that looks into single GPUs (Weng et al., ATC 2023, 4).

A pod goes where it adds least to the fragments: what is free of GPUs and cannot be used by the pods of the workload, in
the mean over them. The whole workload is known in advance. Scores are whole numbers of 0 to 100, as in its plugin for
kube-scheduler; ties are ours, at random.

N nodes, D GPUs of one, M classes of pods, S nodes that are looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Rows
from extender.cluster.ledger.layout import Layout
from extender.cluster.resources import CPU, MEMORY
from lab.bench.placement.traces import PodShape, TraceCluster

_GPU = 1000.0


@dataclass(frozen=True, slots=True)
class _Free:
    """What some nodes have left: CPU [S], memory [S], and of each GPU [S, D]."""

    cpu: Floats
    memory: Floats
    gpus: Floats

    def without(self, task: PodShape) -> "_Free":
        """Return what is left with this task on each: it takes the GPUs with least left that have enough."""
        gpus = self.gpus.copy()
        if task.gpus:
            enough = np.where(gpus >= task.gpu_milli, gpus, np.inf)
            taken = np.argsort(enough, axis=1, kind="stable")[:, : task.gpus]
            np.put_along_axis(gpus, taken, np.take_along_axis(gpus, taken, axis=1) - task.gpu_milli, axis=1)
        demand = task.pod.demand
        return _Free(self.cpu - demand.get(CPU, 0.0), self.memory - demand.get(MEMORY, 0.0), gpus)


class Gradient:
    """Scores nodes for the pods of one workload; what it worked out is kept until a node changes."""

    def __init__(self, workload: TraceCluster, layout: Layout) -> None:
        """Count the classes of pods that ask for GPUs, by the models of GPU that will do."""
        self._layout = layout
        self._models = np.array([workload.models.get(name, "") for name in layout.names])
        classes: dict[tuple[float, ...], dict[tuple[str, ...], int]] = {}
        for task in (task for task in workload.tasks if task.gpus):
            specs = classes.setdefault(_shape(task), {})
            specs[tuple(task.models)] = specs.get(tuple(task.models), 0) + 1
        self._cpu, self._memory, self._number, self._milli = np.array(list(classes)).reshape(-1, 4).T
        total = len(workload.tasks)
        self._part = np.array([sum(specs.values()) for specs in classes.values()]) / total
        self._allowed = {
            model: np.array([_that_take(model, specs) for specs in classes.values()]) / total
            for model in set(self._models.tolist())
        }
        nodes = len(layout.names)
        self._allocated = np.full(layout.capacity.shape, -1.0)
        self._changes: Counts = np.zeros(nodes, dtype=np.int64)
        self._scores: dict[tuple[float, ...], tuple[Floats, Counts]] = {}

    def scores(self, allocated: Floats, gpus: Floats, task: PodShape, rows: Rows) -> Floats:
        """Return a score per node asked about [K]; `allocated` [N, R] is what pods hold, `gpus` [N, D] what is left."""
        self._changes[(allocated != self._allocated).any(axis=1)] += 1
        self._allocated = allocated
        nodes = len(allocated)
        scores, known = self._scores.setdefault(_shape(task), (np.zeros(nodes), np.zeros(nodes, dtype=np.int64)))
        old = rows[known[rows] != self._changes[rows]]
        if len(old):
            columns = [self._layout.columns[name] for name in (CPU, MEMORY)]
            free = (self._layout.capacity[old] - allocated[old])[:, columns]
            before = _Free(free[:, 0], free[:, 1], gpus[old].astype(float))
            more = self._fragments(before.without(task), old) - self._fragments(before, old)
            scores[old] = np.floor(100.0 / (1.0 + np.exp(more / _GPU)))
            known[old] = self._changes[old]
        return np.asarray(scores[rows])

    def _fragments(self, free: _Free, rows: Rows) -> Floats:
        """Return how many thousandths of GPUs a pod cannot use there [S], in the mean over the workload."""
        all_free = free.gpus.sum(axis=1)
        enough = free.gpus[:, np.newaxis] >= self._milli[:, np.newaxis]
        fits = (enough.sum(axis=2) >= self._number) & (free.cpu[:, np.newaxis] >= self._cpu)
        fits &= free.memory[:, np.newaxis] >= self._memory
        small = np.where(enough, 0.0, free.gpus[:, np.newaxis]).sum(axis=2)
        allowed = np.stack([self._allowed[model] for model in self._models[rows].tolist()])
        lost = np.where(fits, small, all_free[:, np.newaxis])
        return np.asarray((allowed * lost).sum(axis=1) + (self._part - allowed).sum(axis=1) * all_free)


def _that_take(model: str, specs: Mapping[tuple[str, ...], int]) -> int:
    """Return how many pods take this model of GPU, of pods by the models that will do for them."""
    return sum(count for models, count in specs.items() if not models or model in models)


def _shape(task: PodShape) -> tuple[float, ...]:
    demand = task.pod.demand
    return (demand.get(CPU, 0.0), demand.get(MEMORY, 0.0), float(task.gpus), float(task.gpu_milli))

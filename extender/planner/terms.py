"""What decides who starts on a node, term by term, and what a plan writes down of it for each start.

    score = alignment x remote x order + the sum of the score terms

A new term of the policy is one entry of `SCORE_TERMS` (docs/developing/add-a-policy-term.md). Everything else of the
service takes what it shows of a term from here, by name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.waiting import Waiting
from extender.planner.candidates import NodeCandidates
from extender.planner.dag_progress import DagProgress
from extender.planner.fairness.precedence import before_others
from extender.planner.fairness.turn import Fairness
from extender.planner.prepared import Prepared
from extender.planner.tuning import Policy
from extender.policy.alignment import TASK_RULES
from extender.policy.barrier import last_before_barrier
from extender.policy.locality import penalised
from extender.policy.shares import dominant_shares


class Terms(NamedTuple):
    """What made one start the best there and then.

    `score` = `alignment` (already times `remote`, the penalty's factor, and `order`, that of its job's DAG) + the
    `score_terms`, in the order of `SCORE_TERMS`; 0 and nothing where a task started without being compared with others.
    `work` is the job's remaining work. `owed` is how far the job was below its fair share (1: it had nothing).
    `barrier`: it was one of the last tasks of its stage. `starved`: its class had waited past its due time. `level` is
    how far from its input it starts: 0 on a node that has it, or where it is all the same; `passed_over` for how many
    seconds its job had been passed over for that. `rank` is where the task stands in the order of its job's DAG: 1 for
    the first of the DAG, towards 0 for the last; None where its job has no order that counts.
    """

    score: float = 0.0
    alignment: float = 0.0
    remote: float = 1.0
    score_terms: tuple[float, ...] = ()
    work: float = 0.0
    owed: float = 0.0
    barrier: bool = False
    starved: bool = False
    level: int = 0
    passed_over: float = 0.0
    order: float = 1.0
    rank: float | None = None


TermsRecord = tuple[
    float, float, float, tuple[Floats, ...], int, float, float, bool, bool, int, float, float, float | None
]
"""What `Terms` are made of, in the order of their fields; the score terms of all candidates, and which it was."""


class TermsLog(Sequence[Terms]):
    """The terms of a plan's starts, each made when somebody reads it: a plan has more starts than are asked about."""

    def __init__(self, records: Sequence[TermsRecord]) -> None:
        self._records = records

    def __len__(self) -> int:
        """Return how many starts there are."""
        return len(self._records)

    @overload
    def __getitem__(self, place: int) -> Terms: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Terms]: ...

    def __getitem__(self, place: int | slice) -> Terms | Sequence[Terms]:
        """Return the terms of one start, or of some."""
        if isinstance(place, slice):
            return TermsLog(self._records[place])
        record = self._records[place]
        score, alignment, remote, points, picked = record[:5]
        score_terms = tuple([term.item(picked) for term in points])
        return Terms(score, alignment, remote, score_terms, *record[5:])


@dataclass(frozen=True, slots=True)
class Scene:
    """What score terms may go by, the same for a whole plan: `work` [C] is the remaining work of each one's job.

    `last` [C] are the last tasks before a barrier, which with packing have no `counted_work` [C]. `queue` [C] is the
    row of each one's queue; None where there is one queue, or where jobs of several are compared (`queue_kappa`).
    """

    policy: Policy
    waiting: Waiting
    classes: Prepared
    work: Floats
    last: Mask
    counted_work: Floats
    queue: Rows | None


@dataclass(frozen=True, slots=True)
class ScoreTerm:
    """One term of the score: its name, and what it adds for each of a node's candidates [k].

    `points` gets the scene, the candidates, and their alignment [k] as the node is before anything starts there. It is
    asked once for each node that is looked at.
    """

    name: str
    points: Callable[[Scene, NodeCandidates, Floats], Floats]


def _remaining_work(scene: Scene, candidates: NodeCandidates, aligned: Floats) -> Floats:
    """Return -eps x remaining work, eps = m x mean(alignment) / mean(work) over the candidates (Tetris, 3.3.2).

    Each queue has its own eps, over its own candidates, where jobs are compared inside a queue: with one eps for all,
    the large jobs of one queue (or a FIFO queue, which counts as one job) would make those of another look alike.
    Without packing it is minus the part of the queue's remaining work: then nothing else counts.
    """
    policy, rows = scene.policy, candidates.rows
    work, counted_work = scene.work.take(rows), scene.counted_work.take(rows)
    if scene.queue is None:  # the usual case: the same for one queue, in less time
        total = float(np.add.reduce(work))  # `sum` does the same by way of Python
        weight = policy.srtf * float(np.add.reduce(np.abs(aligned))) if policy.packing else 1.0
        return -(weight / total if total > 0 else 0.0) * counted_work
    queue = scene.queue.take(rows)
    totals = np.bincount(queue, weights=work)
    weights = policy.srtf * np.bincount(queue, weights=np.abs(aligned)) if policy.packing else np.ones(len(totals))
    eps = np.divide(weights, totals, out=np.zeros(len(totals)), where=totals > 0)
    return np.asarray(-eps.take(queue) * counted_work)


def _suited(scene: Scene, candidates: NodeCandidates, aligned: Floats) -> Floats:
    """Return mean(alignment) x how well idle room suits each (UBIS, VII); 0 where no idle room is given."""
    if scene.waiting.suited is None:
        return np.zeros(len(candidates.rows))
    return np.asarray(np.abs(aligned).mean() * scene.waiting.suited[candidates.rows])


SCORE_TERMS: tuple[ScoreTerm, ...] = (ScoreTerm("remaining work", _remaining_work), ScoreTerm("suited", _suited))
"""What is added to the alignment, in this order. Each is in the unit of the alignment: 0 to the number of resources."""


class Scores:
    """The scores of classes [C] on nodes that have `free` [R, N], as it changes.

    `before` [C] puts classes above others whatever they score, and is no part of the score that is written down.
    """

    def __init__(self, policy: Policy, waiting: Waiting, classes: Prepared, free: Floats) -> None:
        self._classes, self._free = classes, free
        self._rule = TASK_RULES[policy.rule]
        self.progress = DagProgress(waiting, rank=policy.rank)
        wanted = dominant_shares(classes.whole * waiting.count[:, np.newaxis], classes.total)
        last = last_before_barrier(waiting.finished, wanted, barrier=policy.barrier) & ~self.progress.ordered
        work = waiting.jobs.work[waiting.job]
        counted_work = np.where(last, 0.0, work) if policy.packing else work
        apart = len(waiting.jobs.queue_weight) > 1 and not policy.queue_kappa
        queue = waiting.jobs.queue[waiting.job] if apart else None
        self.scene = Scene(policy, waiting, classes, work, last, counted_work, queue)
        self.before = before_others(policy, waiting, last, classes.total)
        self._some_before = bool(np.count_nonzero(self.before))
        # The same as lists: `terms` asks for one of each at every start.
        self._before, self._work, self._last = self.before.tolist(), work.tolist(), last.tolist()

    def of(self, candidates: NodeCandidates) -> tuple[Floats, Floats]:
        """Return the scores [k], and the alignments in them.

        The alignment follows what is taken of the node. The terms stay as they were when it was looked at first.
        """
        aligned = self._aligned(candidates)
        points = candidates.points
        if points is None:
            points = candidates.points = self._points(candidates, aligned)
        return (aligned + points if self.scene.policy.packing else points), aligned

    def terms(
        self,
        task_class: int,
        fairness: Fairness,
        compared: NodeCandidates | None,
        remote: float,
        level: int,
        passed_over: float,
    ) -> TermsRecord:
        """Return the terms of a start, before it is counted; `compared` are those among which it was picked, if any."""
        score, alignment, picked = 0.0, 0.0, -1
        points: tuple[Floats, ...] = ()
        if compared is not None:
            score, alignment = compared.score - self._before[task_class], compared.alignment
            points, picked = compared.score_terms, compared.picked
        work, barrier = self._work[task_class], self._last[task_class]
        owed, starved = fairness.owed_to(task_class), fairness.is_due(task_class)
        order, rank = self.progress.factor.item(task_class), self.progress.rank(task_class)
        return score, alignment, remote, points, picked, work, owed, barrier, starved, level, passed_over, order, rank

    def _aligned(self, candidates: NodeCandidates) -> Floats:
        free = self._free[:, candidates.node]
        if self._classes.unlimited:
            free = np.where(candidates.scale > 0, free, 0.0)
        aligned = self._rule(candidates.takes, np.maximum(free * candidates.scale, 0.0))
        if candidates.factor is not None:
            aligned = penalised(aligned, candidates.factor)
        return penalised(aligned, self.progress.factor[candidates.rows]) if self.progress else aligned

    def _points(self, candidates: NodeCandidates, aligned: Floats) -> Floats:
        candidates.score_terms = tuple([term.points(self.scene, candidates, aligned) for term in SCORE_TERMS])
        points = candidates.score_terms[0]
        for more in candidates.score_terms[1:]:
            points = points + more
        return points + self.before[candidates.rows] if self._some_before else points

"""What decides who starts on a node, term by term, and what a plan writes down of it for each start.

    score = alignment x remote + the sum of the score terms

A new term of the policy is one entry of `SCORE_TERMS` (docs/developing/add-a-policy-term.md). Everything else of the
service takes what it shows of a term from here, by name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from extender.arrays import Floats, Mask
from extender.cluster.waiting import Waiting
from extender.planner.candidates import NodeCandidates
from extender.planner.fairness.precedence import before_others
from extender.planner.fairness.turn import Fairness
from extender.planner.prepared import Prepared
from extender.planner.tuning import Policy
from extender.policy.alignment import TASK_RULES
from extender.policy.barrier import last_before_barrier
from extender.policy.locality import penalised


class Terms(NamedTuple):
    """What made one start the best there and then.

    `score` = `alignment` (already times `remote`, the penalty's factor) + the `score_terms`, in the order of
    `SCORE_TERMS`; 0 and nothing where a task started without being compared with others. `work` is the job's remaining
    work. `owed` is how far the job was below its fair share (1: it had nothing). `barrier`: it was one of the last
    tasks of its stage. `starved`: its class had waited past its due time. `level` is how far from its input it starts:
    0 on a node that has it, or where it is all the same; `passed_over` for how many seconds its job had been passed
    over for that.
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

    @property
    def by_name(self) -> Mapping[str, float]:
        """What each of the score terms added."""
        return dict(zip((term.name for term in SCORE_TERMS), self.score_terms, strict=False))


@dataclass(frozen=True, slots=True)
class Scene:
    """What score terms may go by, the same for a whole plan: `work` [C] is the remaining work of each one's job.

    `last` [C] are the last tasks before a barrier.
    """

    policy: Policy
    waiting: Waiting
    classes: Prepared
    work: Floats
    last: Mask


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

    The last tasks before a barrier have none. Without packing it is minus the part of all remaining work, barrier or
    not: then nothing else counts.
    """
    policy, rows = scene.policy, candidates.rows
    total = float(scene.work[rows].sum())
    if not policy.packing:
        return -((1.0 / total if total > 0 else 0.0) * scene.work[rows])
    weight = policy.srtf * float(np.abs(aligned).sum())
    return -((weight / total if total > 0 else 0.0) * np.where(scene.last[rows], 0.0, scene.work[rows]))


SCORE_TERMS: tuple[ScoreTerm, ...] = (ScoreTerm("remaining work", _remaining_work),)
"""What is added to the alignment, in this order. Each is in the unit of the alignment: 0 to the number of resources."""


class Scores:
    """The scores of classes [C] on nodes that have `free` [R, N], as it changes.

    `before` [C] puts classes above others whatever they score, and is no part of the score that is written down.
    """

    def __init__(self, policy: Policy, waiting: Waiting, classes: Prepared, free: Floats) -> None:
        self._classes, self._free = classes, free
        self._rule = TASK_RULES[policy.rule]
        last = last_before_barrier(waiting.finished, barrier=policy.barrier)
        self.scene = Scene(policy, waiting, classes, waiting.jobs.work[waiting.job], last)
        self.before = before_others(policy, waiting, last)
        self._some_before = bool(np.count_nonzero(self.before))
        # The same as lists: `terms` asks for one of each at every start.
        self._before, self._work, self._last = self.before.tolist(), self.scene.work.tolist(), last.tolist()

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
    ) -> Terms:
        """Return the terms of a start, before it is counted; `compared` are those among which it was picked, if any."""
        score, alignment = 0.0, 0.0
        score_terms: tuple[float, ...] = ()
        if compared is not None:
            score, alignment = compared.score - self._before[task_class], compared.alignment
            score_terms = compared.score_terms[compared.picked]
        work, barrier = self._work[task_class], self._last[task_class]
        owed, starved = fairness.owed_to(task_class), fairness.is_due(task_class)
        # In the order of the fields: by name it takes several times as long, and this is done for every start.
        return Terms(score, alignment, remote, score_terms, work, owed, barrier, starved, level, passed_over)

    def _aligned(self, candidates: NodeCandidates) -> Floats:
        free = self._free[:, candidates.node]
        if self._classes.unlimited:
            free = np.where(candidates.per_unit > 0, free, 0.0)
        aligned = self._rule(candidates.takes, np.maximum(free * candidates.per_unit, 0.0))
        return aligned if candidates.factor is None else penalised(aligned, candidates.factor)

    def _points(self, candidates: NodeCandidates, aligned: Floats) -> Floats:
        first, *others = (term.points(self.scene, candidates, aligned) for term in SCORE_TERMS)
        candidates.score_terms = list(zip(first.tolist(), *(more.tolist() for more in others), strict=True))
        points = sum(others, start=first)
        return points + self.before[candidates.rows] if self._some_before else points

"""Delay Scheduling while a plan is made: who may start how far from its input, and who is passed over."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.waiting import Waiting
from extender.planner.candidates import NodeCandidates
from extender.planner.fairness.turn import Fairness
from extender.planner.locality.locality_waits import Waits
from extender.planner.locality.nearness import Nearness
from extender.planner.locality.sources import Sources
from extender.planner.plan import Carried, LocalityWait
from extender.planner.prepared import Prepared
from extender.planner.tuning import Policy

_NOWHERE = 2**31


class Locality:
    """How near classes [C] would start on nodes [N], and for how long their jobs have waited."""

    def __init__(
        self, policy: Policy, waiting: Waiting, classes: Prepared, carried: Carried, *, now: float, sources: Sources
    ) -> None:
        """Take where classes read, as it changes."""
        self.nearness = Nearness(waiting, classes, sources, long_task=policy.long_task)
        near = self.nearness
        existing = near.existing(len(policy.locality_waits))
        self.waits = Waits(policy, waiting, carried, now, chooses=near.chooses, existing=existing)

    def checkpoint(self) -> Callable[[], None]:
        """Return what takes back all that starts from now on; who was passed over has been."""
        parts = self.nearness.checkpoint(), self.waits.checkpoint()

        def undo() -> None:
            for part in parts:
                part()

        return undo

    def farther(self, rows: Rows, nodes: Rows, near: Mask, far: Mask) -> Mask:
        """Return where classes fit, but farther from their input than elsewhere [rows, nodes]."""
        farther = np.zeros_like(near)
        choosing = self.nearness.chooses[rows].nonzero()[0]
        near = near[choosing]
        levels = np.where(near | far[choosing], self.nearness.levels(rows[choosing], nodes, near), _NOWHERE)
        farther[choosing] = (levels < _NOWHERE) & (levels > levels.min(axis=1, keepdims=True))
        return farther

    def look(self, candidates: NodeCandidates) -> Mask:
        """Take note of how far from their input classes would start on a node; return who would not be next to it."""
        near, node = candidates.near, np.array([candidates.node])
        levels = candidates.levels = self.nearness.levels(candidates.rows, node, near[:, np.newaxis])[:, 0]
        return np.asarray(~near | (levels > 0))

    def pick(self, candidates: NodeCandidates, scores: Floats, fairness: Fairness) -> int:
        """Return the place of the candidate that goes next, -1 for nobody; who waits for a nearer node is passed over.

        If all whose turn it is wait, it is the turn of the first of the others (algorithm 3).
        """
        able, pool = candidates.open_to(self.waits.may), candidates.fits
        passed = np.zeros(len(pool), dtype=np.bool_)
        while np.count_nonzero(pool):
            turn = fairness.first(candidates, pool)
            if np.count_nonzero(passed):
                turn = fairness.next_in_line(candidates.rows, turn)
            going = candidates.heads(turn & able)
            if np.count_nonzero(going):
                candidates.picked = int(np.where(going, scores, -np.inf).argmax())
                candidates.passed = passed | candidates.ahead(turn & ~able, going, scores)
                return candidates.picked
            passed, pool = passed | turn, pool & ~turn
        self.waits.skip(candidates.rows[passed], stays=True)
        return -1

    def pass_over(self, candidates: NodeCandidates) -> None:
        """Take note of who was passed over for the one that was picked of the candidates."""
        if candidates.passed is not None:
            self.waits.skip(candidates.rows[candidates.passed], stays=False)

    def keep_near(self, rows: Rows, nodes: Rows, near: Mask, far: Mask) -> tuple[Mask, Mask]:
        """Return where classes that are due fit [rows, nodes] and may start; who fits, but may not yet, is passed over.

        Their waits pass by the clock from then on.
        """
        levels, fits = self.nearness.levels(rows, nodes, near), near | far
        able = levels <= self.waits.may[rows, np.newaxis]
        self.waits.skip(rows[fits.any(axis=1) & ~(fits & able).any(axis=1)], stays=False, starved=True)
        return near & able, far & able

    def within(self, task_class: int, node: int) -> Sequence[Mask]:
        """Return from which nodes a block may come to this one, the nearest first (`Sources.take`)."""
        return self.nearness.within(task_class, node, int(self.waits.may[task_class]))

    def found_no_source(self, task_class: int) -> None:
        """Take note of a class that may not read from as far as it would have to."""
        if self.waits.may[task_class] < _NOWHERE:
            self.waits.skip(np.array([task_class]), stays=True)

    def passed_over(self, task_class: int) -> float:
        """Return for how many seconds the class's job has been passed over since its last start."""
        return self.waits.seconds(task_class)

    def start(self, task_class: int, node: int, source: int, *, near: bool) -> int:
        """Take note of a task that was just placed; returns how far from its input it starts."""
        level = self.nearness.of_start(task_class, node, source, near=near)
        self.nearness.count(task_class, node)
        self.waits.start(task_class, level)
        return level

    def outcome(self, now: float, left: Mask) -> tuple[Mapping[str, LocalityWait], float]:
        """Return what the next plan goes on with, and when it should be if nothing happens; tasks are `left` [C]."""
        again_at = self.waits.again_at(now, left)
        return self.waits.carried(left), again_at

"""One plan from beginning to end, and a planner that carries what one plan hands to the next."""

from dataclasses import replace

import numpy as np

from extender.arrays import Mask
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Waiting
from extender.planner.board import Board
from extender.planner.fairness.due_times import due_times
from extender.planner.fairness.priorities import levels
from extender.planner.fairness.reservations import Reservations
from extender.planner.filling import match
from extender.planner.gangs import Gangs, fill_by_gangs, start_due_gangs
from extender.planner.locality.locality_waits import waits_without
from extender.planner.misfits import without_misfits
from extender.planner.overbooking import overbook
from extender.planner.plan import Carried, Plan
from extender.planner.prepared import Prepared, prepared
from extender.planner.reasons import held
from extender.planner.tuning import Policy


class Planner:
    """Plans by one policy and keeps what one plan hands to the next; `plan` is `plan_once` with that."""

    def __init__(self, policy: Policy | None = None, *, explain: bool = False) -> None:
        self.policy = policy or Policy()
        self.carried = Carried()
        self._prepared: Prepared | None = None
        self._explain = explain

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float, *, most: int | None = None) -> Plan:
        """Return what to start now, or, with `most`, about so many tasks that would be the first of it.

        It is meant for who could not start more at once; a gang counts as one. Arrays that were
        handed over are not to be changed in place: what was made of them is used again.
        """
        if self._prepared is None or not self._prepared.suits(waiting, snapshot.layout):
            self._prepared = prepared(waiting, snapshot.layout, self._prepared)
        plan = _plan(
            self.policy, snapshot, waiting, now, self.carried, self._prepared, explain=self._explain, most=most
        )
        self.carried = plan.carried
        return plan

    def rest(self, now: float) -> None:
        """Take note that nobody plans: the time until `now` passes over nobody, and ends no reservation."""
        passed = max(now - self.carried.planned_at, 0.0)
        reserved = {
            name: replace(reservation, until=reservation.until + passed)
            for name, reservation in self.carried.reserved.items()
        }
        self.carried = replace(self.carried, reserved=reserved, planned_at=now)


def plan_once(
    policy: Policy, snapshot: Snapshot, waiting: Waiting, now: float, carried: Carried, *, explain: bool = False
) -> Plan:
    """Return what to start at `now` seconds; `carried` is what the last plan returned as such."""
    return _plan(policy, snapshot, waiting, now, carried, prepared(waiting, snapshot.layout), explain=explain)


def _plan(
    policy: Policy,
    snapshot: Snapshot,
    waiting: Waiting,
    now: float,
    carried: Carried,
    classes: Prepared,
    *,
    explain: bool,
    most: int | None = None,
) -> Plan:
    # 1. Set up the board: what is free, who waits, whose turn it is, who is due, and what was reserved. Who could not
    #    start if all nodes were empty takes no part in it.
    everyone, all_gangs = waiting, Gangs(waiting)
    waiting = without_misfits(everyone, all_gangs, snapshot.empty, classes.total, classes.unreadable)
    board = Board(policy, snapshot, waiting, carried, classes, now=now)
    board.most = most
    gangs, jobs = all_gangs if waiting is everyone else Gangs(waiting), waiting.jobs
    times = due_times(policy, waiting, board.fairness, carried, now)
    board.fairness.set_due(times.due, np.array([name in carried.by_due for name in jobs.queue_names], dtype=np.bool_))
    order = levels(waiting)
    reservations = Reservations(board, gangs, order, now)
    # 2. Plan one priority after the other, the highest first.
    #    For shuffles of this level and of those above it a part of each disk is kept.
    planned = np.zeros(len(waiting.count), dtype=np.bool_)
    for level in order:
        planned |= level
        if len(order) > 1:
            board.admit(level)
            board.sources.keep_for(np.where(planned, board.left, 0))
        _plan_level(board, gangs, reservations, level, now)
    # 3. Say what the next plan goes on with, and when it should be made at the latest.
    if board.locality is not None:
        waits, again_at = board.locality.outcome(now, board.left > 0)
    else:
        waits, again_at = waits_without((), waiting, carried, now), np.inf
    board.left += everyone.count - waiting.count  # the others are told why they wait, too
    by_due = {name for name, due in zip(jobs.queue_names, board.fairness.by_due.tolist(), strict=True) if due}
    return Plan(
        assignments=board.taken.assignments(),
        terms=board.taken.terms(),
        held=held(board, all_gangs, reservations.reserved) if explain else {},
        carried=replace(
            reservations.outcome(now),
            locality=waits,
            due=times.promised,
            by_due=frozenset(by_due),
        ),
        again_at=min(again_at, times.next_at, reservations.next_lapse()),
        kept_idle=reservations.kept_idle(),
    )


def _plan_level(board: Board, gangs: Gangs, reservations: Reservations, level: Mask, now: float) -> None:
    """Plan the classes of one priority [C] to the end: what they leave is for lower ones."""
    # 1. First go those for whom room was reserved, then who is due: a class of the queue whose turn it is, gangs.
    reservations.honour(level)
    reservations.start_due(level)
    out = start_due_gangs(board, gangs, level)
    # 2. Reserve room for who is due and fits nowhere, before others take it.
    board.admit(level)
    reservations.reserve_for_due(level)
    # 3. Match the rest, node by node, until nothing fits; then, where that is on, beyond what there is; then in
    #    reserved room who ends before that is needed.
    if len(gangs.rows(level)):
        fill_by_gangs(board, gangs, level, out)
    else:
        match(board, board)
        overbook(board, level, now)
    reservations.backfill(level)
    # 4. Reserve room for who outranks others, and for queues below their part, of which nothing fits yet.
    reservations.reserve_for_outranking(level)
    reservations.reserve_for_queues(level)

"""Room that is reserved: for a class or gang that its queue is entitled to start, and that fits nowhere yet.

Queues are looked at in the order of their turns. Each has one *claimant* at most, a class or a gang:

1. the one that has been due for longest;
2. else, of those that outrank others by priority, the one that has waited longest;
3. else, where nothing of a queue below its part fits anywhere, the one that has waited longest. Of classes that need
   the same as that one it is the first by the score.

A queue is *entitled* to its claimant in any of these cases:

- With the claimant it stays within its part of the cluster.
- The claimant is due, the queue has no more than its part, and the claimant alone is no more than that. So the queue
  passes its part by one claimant at most.
- Room is kept already for a claimant that is due.
- The claimant outranks others, and its queue waits alone at its level of priority. Else what lower levels leave would
  never add up to its room.
- The claimant is due and the queue has paid. It *saves*: what it is owed is added up over time. That must come to the
  excess over the part, for as long as the claimant runs. It is the excess of the claimant alone, or, where that is no
  larger than the part, of what the queue has.

While a queue saves, its other classes get only what nobody else can use. At least a quarter of the part counts as owed,
whatever they have: else the claimant could wait as long as there is a backlog. A queue begins to save only for what
will have room, and once it has paid it goes on only while room is reserved: else what never fits would keep its other
classes waiting for ever. Where only gangs wait, each larger than the part, the queue saves for the oldest at once, due
or not: it can start nothing else.

Only the room that the claimant needs is kept, on the node that will have it soonest by the ends of what runs. What
never ends (daemons, pods of others) never gives room, so nothing is kept for what cannot start. All that is kept comes
to at most `reservable` of the cluster, or to what one claimant needs. A reservation that comes to nothing lapses, and
the next one for that class is put off for longer each time.
"""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from extender.arrays import Mask, Rows
from extender.planner.board import Board
from extender.planner.fairness.claimants import CLASSES_TRIED, Claimants
from extender.planner.fairness.entitlement import Entitlement
from extender.planner.fairness.lapses import Lapses
from extender.planner.fairness.reserved_room import ReservedRoom
from extender.planner.fairness.soonest_room import Claimant, room_to_come, soonest_room
from extender.planner.filling import AtMost, match
from extender.planner.gangs import Gangs, goes_whole
from extender.planner.misfits import fit_somewhere
from extender.planner.plan import Carried, Reservation

_NODES_TRIED = 16
_QUEUES_TRIED = 16
_QUEUES_LOOKED_AT = 64
_ROUNDING = 1e-9


class Reservations:
    """What is reserved while a plan is made, already taken from the board's `free`.

    `levels` are the classes [C] by priority, the highest first.
    """

    def __init__(self, board: Board, gangs: Gangs, levels: Sequence[Mask], now: float) -> None:
        self._board, self._gangs, self._now = board, gangs, now
        self._outranking: Mask = ~levels[-1]
        self._before = board.carried
        self.reserved: dict[str, Reservation] = {}
        self._lapses = Lapses(board, now)
        self._claimants = Claimants(board, gangs, self._lapses)
        self._room = ReservedRoom(board, self._claimants.row)
        self._entitlement = Entitlement(board, self._claimants, levels, now)

    # -- at the beginning of a level

    def honour(self, level: Mask) -> None:
        """Start whom room was reserved for, if it is there by now; else it is kept on.

        But not for a claimant that has room, and waits for a nearer node.
        """
        board, rows = self._board, self._board.snapshot.layout.rows
        claims = list(self._still_valid(level))
        for _, reservation in claims:
            self._room.keep(reservation)
        for name, reservation in claims:
            claimant = self._claimants.of(self._claimants.row[name])
            self._room.give_back(reservation)
            started = self._starts(claimant, [rows[node] for node in reservation.nodes])
            if not started and not self._claimants.fits_now(claimant):
                self._room.keep(reservation)
                self.reserved[name] = reservation
        board.admit(level)

    def start_due(self, level: Mask) -> None:
        """Start one class that is due of the queue whose turn it is, wherever it fits.

        What a gang that has begun still lacks goes before: its queue had that turn already. None of them leaves disks
        to shuffles: else it and they could wait for each other for ever.
        """
        fairness, board = self._board.fairness, self._board
        for row in (level & (board.waiting.since == -np.inf) & board.alive & (self._gangs.of < 0)).nonzero()[0]:
            self._starts(Claimant((int(row),), (1,)), ())
        due = (level & (fairness.due < np.inf) & board.alive & (self._gangs.of < 0)).nonzero()[0]
        if not len(due):
            return
        alive = np.unique(fairness.queue[board.alive])
        first = alive[fairness.queues.keys()[alive].argmin()]
        mine = due[(fairness.queue[due] == first) & ~fairness.by_due[fairness.queue[due]]]
        mine = mine[np.argsort(fairness.due[mine], kind="stable")]
        for row in itertools.islice(self._claimants.with_room(mine, board.free.T), CLASSES_TRIED):
            if self._starts(Claimant((row,), (1,)), ()):
                return

    def reserve_for_due(self, level: Mask) -> None:
        """Reserve room for who is due, has none and fits nowhere now."""
        fairness = self._board.fairness
        due = level & (self._board.left > 0) & (fairness.due < np.inf)
        for queue in self._queues(due):
            rows = (due & (fairness.queue == queue)).nonzero()[0]
            self._reserve_for_first(rows[np.argsort(fairness.due[rows], kind="stable")])

    # -- at its end

    def backfill(self, level: Mask) -> None:
        """Let tasks that end before a gang's room is all there use it meanwhile (EASY backfilling; Lifka 1995).

        Only those of the gang's own queue: what others declare delays nobody. No more than leave the queue its right to
        the room. And only while no reservation for the gang has come to nothing, so durations that are wrong delay it
        once.
        """
        board, fairness = self._board, self._board.fairness
        ends = self._now + board.waiting.duration
        may = level & (self._gangs.of < 0)
        for name, reservation in self.reserved.items():
            row = self._claimants.row[name]
            if self._gangs.of[row] < 0 or name in self._lapses.lapsed:
                continue
            short = may & (ends <= reservation.ready) & (fairness.queue == fairness.queue[row]) & (board.left > 0)
            most = int(self._entitlement.spare(self._claimants.of(row)) / fairness.takes[short].max(initial=_ROUNDING))
            self._room.give_back(reservation)
            if self._claimants.any_fits(short.nonzero()[0], self._room.nodes_of(reservation)):
                board.admit(short)
                match(board, AtMost(board, most))
            self._room.keep(reservation)

    def reserve_for_outranking(self, level: Mask) -> None:
        """Reserve room for who outranks others and fits nowhere now, before these take what comes free.

        Who is due in this level comes first: then there is none.
        """
        if self._board.waiting.running is None or self._is_due(level):
            return
        waits = self._claimants.left_waiting(level & self._outranking)
        for queue in self._queues(waits):
            self._reserve_for_first(self._claimants.longest_waiting(waits, queue))

    def reserve_for_queues(self, level: Mask) -> None:
        """Reserve room for queues below their part of which nothing fits anywhere."""
        board, fairness = self._board, self._board.fairness
        if not fairness.several or board.waiting.running is None:
            return
        waits = self._claimants.left_waiting(level)
        for queue in self._queues(waits):
            rows = self._claimants.longest_waiting(waits, queue)
            single = rows[self._gangs.of[rows] < 0]
            if self._claimants.any_fits(single[:CLASSES_TRIED]):
                continue
            for claimant in self._claimants.that_may(rows):
                if self._entitlement.holds(claimant):
                    claimant = self._claimants.first_alike(claimant, waits)
                elif not self._entitlement.saves_at_once(claimant):
                    continue
                if self._claim(claimant):
                    break

    def outcome(self, now: float) -> Carried:
        """Return what the next plan goes on with."""
        return Carried(reserved=self.reserved, owed=self._entitlement.owed, lapsed=self._lapses.lapsed, planned_at=now)

    def next_lapse(self) -> float:
        """Return when the first reservation ends if nothing happens before; infinite without any."""
        return min((reservation.until for reservation in self.reserved.values()), default=np.inf)

    def kept_idle(self) -> float:
        """Return the part of the cluster that has room, and is reserved, by the resource of which it is most."""
        return self._room.idle()

    # -- whose claim is next

    def _reserve_for_first(self, rows: Rows) -> None:
        """Reserve room for the first of these classes, or its gang, that may claim it and fits nowhere now."""
        for claimant in self._claimants.that_may(rows):
            if not self._claimants.fits_now(claimant) and self._claim(claimant):
                return

    def _is_due(self, level: Mask) -> bool:
        """Whether anybody who waits in a level is due."""
        board = self._board
        return bool((level & (board.left > 0) & (board.fairness.due < np.inf)).any())

    def _still_valid(self, level: Mask) -> Iterable[tuple[str, Reservation]]:
        """Yield what is still reserved: its class waits, its queue is entitled, its nodes are there, in time.

        Nothing is for who merely outranks others while somebody of its level is due.
        """
        fairness, is_due = self._board.fairness, self._is_due(level)
        for name, reservation in self._before.reserved.items():
            row = self._claimants.row.get(name, -1)
            if row < 0 or not level[row] or not self._board.left[row]:
                continue
            claimant = self._claimants.of(row)
            if not self._room.still_fits(reservation) or not (
                self._entitlement.may_save(row) or self._entitlement.holds(claimant)
            ):
                continue
            if is_due and self._outranking[row] and not fairness.is_due(row):
                continue
            if self._now >= reservation.until:
                self._lapses.note(name)
            else:
                yield name, reservation

    def _queues(self, classes: Mask) -> list[int]:
        """Return the queues of these classes [C] without a reservation, the next one first; not all of very many.

        Where there are many, those are left out of which nothing will have room: they would stand before all others.
        """
        if not np.count_nonzero(classes):  # as a rule nobody is due, and nobody outranks others
            return []
        fairness = self._board.fairness
        queues = np.unique(fairness.queue[classes])
        has = {int(fairness.queue[self._claimants.row[name]]) for name in self.reserved}
        order = queues[np.argsort(fairness.queues.keys()[queues], kind="stable")].tolist()
        order = [queue for queue in order if queue not in has]
        if len(order) > _QUEUES_TRIED:
            room, rows = room_to_come(self._board), classes.nonzero()[0]
            each = (rows[fairness.queue[rows] == queue][:CLASSES_TRIED] for queue in order[:_QUEUES_LOOKED_AT])
            hopeful = (fit_somewhere(self._board.waiting, room, some).any() for some in each)
            order = [queue for queue, is_hopeful in zip(order, hopeful, strict=False) if is_hopeful]
        return order[:_QUEUES_TRIED]

    # -- starting and keeping

    def _starts(self, claimant: Claimant, preferred: Sequence[int]) -> bool:
        """Start the claimant, on the `preferred` nodes where it can; say whether that was done."""
        board, due = self._board, self._board.fairness.is_due(claimant.row)
        if claimant.gang >= 0:
            started = goes_whole(board, self._gangs, claimant.gang)
        else:
            board.sources.keeping = False
            started = _start(board, claimant.row, preferred, due=due)
            board.sources.keeping = True
        if started:
            self._entitlement.note_start(claimant)
            self._lapses.lapsed.pop(self._claimants.name(claimant), None)
        return started

    def _claim(self, claimant: Claimant) -> bool:
        """Keep room, or have the queue save for it; False where there is none to be kept."""
        board, name = self._board, self._claimants.name(claimant)
        if not self._entitlement.holds(claimant):
            room, _ = soonest_room(board, claimant, self._now)
            if room and (board.fairness.is_due(claimant.row) or self._entitlement.saves_at_once(claimant)):
                self._entitlement.owed.setdefault(name, 0.0)
            return bool(room)
        kept = float((self._room.parts() + self._claimants.takes(claimant)).max())
        if claimant.gang >= 0 and self._starts(claimant, ()):
            return True
        room, ends_at = soonest_room(board, claimant, self._now)
        if not room:
            return False
        if self.reserved and kept > board.policy.reservable + _ROUNDING:
            return True
        names, nodes = board.waiting.names, board.snapshot.layout.names
        self.reserved[name] = Reservation(
            tuple((names[row], nodes[node], tasks) for row, node, tasks in room), self._lapses.until(ends_at), ends_at
        )
        self._room.keep(self.reserved[name])
        return True


def _start(board: Board, row: int, preferred: Sequence[int], *, due: bool) -> bool:
    """Place one task where it fits: on a preferred node, else on one with its block or where nodes are filled first."""
    nodes = np.arange(board.free.shape[1])
    near, far = board.room.fits(np.array([row]), nodes)
    if board.locality is not None and due:
        near, far = board.locality.keep_near(np.array([row]), nodes, near, far)
    places = nodes[(near | far)[0]]
    key = board.room.order(places)
    if not board.classes.own[row]:
        key = key + board.sources.local(np.array([row]), places)
    order = places[np.argsort(-key, kind="stable")].tolist()
    first = [node for node in preferred if node in order]
    for node in (first + [node for node in order if node not in first])[:_NODES_TRIED]:
        if board.start(row, node):
            return True
    return False

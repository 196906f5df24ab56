"""Room that is reserved: for a class or gang that its queue is entitled to start, and that fits nowhere yet.

One claimant a queue, the queue whose turn is next first: the class or gang that has been due for longest; else the one
that has waited longest of those that outrank others; else, where nothing of a queue below its part fits anywhere, the
class or gang that has waited longest, or of the classes of its queue that need the same the first by the score.

A queue is *entitled* to that one if it stays within its part of the cluster with it. To one that is due it is entitled
if it has no more than its part, and the claimant alone is no more: so it passes its part by that one at most. Else it
has to pay: the queue saves, and what it is owed meanwhile, added up over time, has to come to what is beyond the part
(of the claimant, or, if that is no more, of what the queue has) for as long as the claimant runs. While it saves, its
others get only what nobody else can use, so at least a quarter of the part counts as owed, whatever they have: else
the claimant could wait as long as there is a backlog. The queue begins to save only for what will have room, and once
it has paid it saves on only while room is reserved: else what never fits would keep the queue's others waiting for
ever. Once room is kept for a claimant that is due, its queue stays entitled to it. A queue that waits alone at its
level of priority is entitled to a claimant that outranks others whatever it has: else what those of lower priority
leave would never add up to its room.

Only the room that the claimant needs is kept, on the node that will have it soonest by the ends of what runs. What
never ends (daemons, pods of others) never gives room, so nothing is kept for what cannot start. All that is kept comes
to at most `reservable` of the cluster, or to what one claimant needs. A reservation that comes to nothing lapses, and
the next one for that class is put off for longer each time.
"""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.planner.board import Board
from extender.planner.fairness.soonest_room import Claimant, on_empty_nodes, room_to_come, soonest_room
from extender.planner.filling import AtMost, match
from extender.planner.gangs import Gangs, goes_whole
from extender.planner.misfits import fit_somewhere
from extender.planner.plan import Carried, Lapse, Reservation
from extender.policy.shares import dominant_shares, parts

_NODES_TRIED = 16
_CLASSES_TRIED = 16
_CLASSES_LOOKED_AT = 256
_QUEUES_TRIED = 16
_QUEUES_LOOKED_AT = 64
_LONGEST_STEP_SECONDS = 300.0
_LEAST_SAVED = 0.25
"""Of the queue's part. So over time a queue takes at most a quarter of its part beyond it by this."""
_LEAST_LAPSE_SECONDS, _LONGEST_LAPSE_SECONDS = 60.0, 3600.0
_MOST_LATE_SECONDS = 3600.0
_ROUNDING = 1e-9


class Reservations:
    """What is reserved while a plan is made, already taken from the board's `free`.

    `levels` are the classes [C] by priority, the highest first.
    """

    def __init__(self, board: Board, gangs: Gangs, levels: Sequence[Mask], now: float) -> None:
        self._board, self._gangs, self._now = board, gangs, now
        self._outranking: Mask = ~levels[-1]
        self._outranks_alone: Mask = np.zeros_like(self._outranking)
        for level in levels[:-1]:
            if len(np.unique(board.fairness.queue[level & board.alive])) <= 1:
                self._outranks_alone |= level
        self._before = board.carried
        self.reserved: dict[str, Reservation] = {}
        self.owed: dict[str, float] = {}
        self._row = {name: row for row, name in enumerate(board.waiting.names)}
        self.lapsed: dict[str, Lapse] = {
            name: lapse for name, lapse in board.carried.lapsed.items() if name in self._row
        }
        self._note_owed()

    # -- at the beginning of a level

    def honour(self, level: Mask) -> None:
        """Start whom room was reserved for, if it is there by now; else it is kept on.

        But not for a claimant that has room, and waits for a nearer node.
        """
        board, rows = self._board, self._board.snapshot.layout.rows
        claims = list(self._still_valid(level))
        for _, reservation in claims:
            self._keep(reservation, 1.0)
        for name, reservation in claims:
            claimant = self._claimant_of(self._row[name])
            self._keep(reservation, -1.0)
            started = self._starts(claimant, [rows[node] for node in reservation.nodes])
            if not started and not self._fits_now(claimant):
                self._keep(reservation, 1.0)
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
        for row in itertools.islice(self._some_with_room(mine, board.free.T), _CLASSES_TRIED):
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
            row = self._row[name]
            if self._gangs.of[row] < 0 or name in self.lapsed:
                continue
            short = may & (ends <= reservation.ready) & (fairness.queue == fairness.queue[row]) & (board.left > 0)
            most = int(self._spare(self._claimant_of(row)) / fairness.takes[short].max(initial=_ROUNDING))
            self._keep(reservation, -1.0)
            if self._any_fits(short.nonzero()[0], self._rows_of(reservation)):
                board.admit(short)
                match(board, AtMost(board, most))
            self._keep(reservation, 1.0)

    def reserve_for_outranking(self, level: Mask) -> None:
        """Reserve room for who outranks others and fits nowhere now, before these take what comes free.

        Who is due in this level comes first: then there is none.
        """
        if self._board.waiting.running is None or self._is_due(level):
            return
        waits = self._left_waiting(level & self._outranking)
        for queue in self._queues(waits):
            self._reserve_for_first(self._longest_waiting(waits, queue))

    def reserve_for_queues(self, level: Mask) -> None:
        """Reserve room for queues below their part of which nothing fits anywhere."""
        board, fairness = self._board, self._board.fairness
        if not fairness.several or board.waiting.running is None:
            return
        waits = self._left_waiting(level)
        for queue in self._queues(waits):
            rows = self._longest_waiting(waits, queue)
            single = rows[self._gangs.of[rows] < 0]
            if self._any_fits(single[:_CLASSES_TRIED]):
                continue
            for claimant in self._claimants(rows):
                if self._is_entitled(claimant) and self._claim(self._first_alike(claimant, waits)):
                    break

    def outcome(self, now: float) -> Carried:
        """Return what the next plan goes on with."""
        return Carried(reserved=self.reserved, owed=self.owed, lapsed=self.lapsed, planned_at=now)

    def next_lapse(self) -> float:
        """Return when the first reservation ends if nothing happens before; infinite without any."""
        return min((reservation.until for reservation in self.reserved.values()), default=np.inf)

    def kept_idle(self) -> float:
        """Return the part of the cluster that has room, and is reserved, by the resource of which it is most."""
        board = self._board
        if not np.count_nonzero(board.reserved):
            return 0.0
        idle = np.clip(np.minimum(board.reserved, board.free + board.reserved), 0.0, None).sum(axis=1)
        return float(dominant_shares(idle, board.classes.total))

    # -- who may claim

    def _reserve_for_first(self, rows: Rows) -> None:
        """Reserve room for the first of these classes, or its gang, that may claim it and fits nowhere now."""
        for claimant in self._claimants(rows):
            if not self._fits_now(claimant) and self._claim(claimant):
                return

    def _claimants(self, rows: Rows) -> Iterable[Claimant]:
        """Yield the first of these classes, or their gangs, that may claim room, each once; not all of very many."""
        few = len(rows) <= _CLASSES_TRIED
        hopeful = rows.tolist() if few else self._some_with_room(rows, room_to_come(self._board))
        found: set[int] = set()
        for claimant in map(self._claimant_of, hopeful):
            if claimant.row not in found and self._may_claim(claimant):
                found.add(claimant.row)
                yield claimant
            if len(found) >= _CLASSES_TRIED:
                return

    def _some_with_room(self, rows: Rows, room: Floats) -> Iterable[int]:
        """Yield those of these classes of which a task fits where there is so much `room` [N, R], not of very many.

        So those that wait for what never comes do not stand before all others.
        """
        for begin in range(0, min(len(rows), _CLASSES_LOOKED_AT), _CLASSES_TRIED):
            some = rows[begin : begin + _CLASSES_TRIED]
            yield from some[fit_somewhere(self._board.waiting, room, some)].tolist()

    def _is_due(self, level: Mask) -> bool:
        """Whether anybody who waits in a level is due."""
        board = self._board
        return bool((level & (board.left > 0) & (board.fairness.due < np.inf)).any())

    def _left_waiting(self, classes: Mask) -> Mask:
        """Return those of these classes [C] that the plan leaves waiting, for no nearer node: they want no other."""
        board = self._board
        waits = classes & (board.left > 0)
        return waits if board.locality is None else waits & ~board.locality.nearness.chooses

    def _longest_waiting(self, classes: Mask, queue: int) -> Rows:
        """Return the rows of those of these classes [C] of a queue that wait, who has waited longest first."""
        since = self._board.waiting.since
        rows = (classes & (self._board.fairness.queue == queue) & (since < np.inf)).nonzero()[0]
        return np.asarray(rows[np.argsort(since[rows], kind="stable")])

    def _first_alike(self, claimant: Claimant, classes: Mask) -> Claimant:
        """Return whose turn it is, by the score, of those of these classes [C] of its queue that need the same."""
        board, fairness, row = self._board, self._board.fairness, claimant.row
        waiting, whole = board.waiting, board.classes.whole
        if claimant.gang >= 0 or waiting.since[row] == -np.inf or waiting.behind is not None:
            return claimant  # gangs, what a gang that has begun still lacks, and FIFO queues go by age
        alike = classes & (self._gangs.of < 0) & (fairness.queue == fairness.queue[row])
        rows = (alike & (waiting.since < np.inf) & (whole == whole[row]).all(axis=1)).nonzero()[0]
        if waiting.barred is not None:
            rows = rows[(waiting.barred[rows] == waiting.barred[row]).all(axis=1)]
        in_line, scores = fairness.next_in_line(rows, np.ones(len(rows), dtype=np.bool_)), board.scores
        order = np.lexsort((waiting.since[rows], scores.scene.counted_work[rows], -scores.before[rows], ~in_line))
        first = self._claimant_of(int(rows[order[0]]))
        return first if self._may_claim(first) else claimant

    def _still_valid(self, level: Mask) -> Iterable[tuple[str, Reservation]]:
        """Yield what is still reserved: its class waits, its queue is entitled, its nodes are there, in time.

        Nothing is for who merely outranks others while somebody of its level is due.
        """
        fairness, is_due = self._board.fairness, self._is_due(level)
        for name, reservation in self._before.reserved.items():
            row = self._row.get(name, -1)
            if row < 0 or not level[row] or not self._board.left[row]:
                continue
            claimant = self._claimant_of(row)
            if not self._still_fits(reservation) or not (fairness.is_due(row) or self._is_entitled(claimant)):
                continue
            if is_due and self._outranking[row] and not fairness.is_due(row):
                continue
            if self._now >= reservation.until:
                self._note_lapse(name)
            else:
                yield name, reservation

    def _still_fits(self, reservation: Reservation) -> bool:
        """Whether all its classes and nodes are there, each node large enough if it were empty."""
        rows = self._board.snapshot.layout.rows
        there = all(name in self._row and node in rows for name, node, _ in reservation.room)
        return there and all(
            bool(on_empty_nodes(self._board, self._row[name])[1][rows[node]]) for name, node, _ in reservation.room
        )

    def _claimant_of(self, row: int) -> Claimant:
        gang = int(self._gangs.of[row])
        if gang < 0:
            return Claimant((row,), (1,))
        rows = self._gangs.rows_of(gang).tolist()
        missing, tasks = int(self._gangs.least[gang]), []
        for member in rows:
            tasks.append(min(missing, self._board.left.item(member)))
            missing -= tasks[-1]
        return Claimant(tuple(rows), tuple(tasks), gang)

    def _queues(self, classes: Mask) -> list[int]:
        """Return the queues of these classes [C] without a reservation, the next one first; not all of very many.

        Where there are many, those are left out of which nothing will have room: they would stand before all others.
        """
        if not np.count_nonzero(classes):  # as a rule nobody is due, and nobody outranks others
            return []
        fairness = self._board.fairness
        queues = np.unique(fairness.queue[classes])
        has = {int(fairness.queue[self._row[name]]) for name in self.reserved}
        order = queues[np.argsort(fairness.queues.keys()[queues], kind="stable")].tolist()
        order = [queue for queue in order if queue not in has]
        if len(order) > _QUEUES_TRIED:
            room, rows = room_to_come(self._board), classes.nonzero()[0]
            each = (rows[fairness.queue[rows] == queue][:_CLASSES_TRIED] for queue in order[:_QUEUES_LOOKED_AT])
            hopeful = (fit_somewhere(self._board.waiting, room, some).any() for some in each)
            order = [queue for queue, is_hopeful in zip(order, hopeful, strict=False) if is_hopeful]
        return order[:_QUEUES_TRIED]

    def _may_claim(self, claimant: Claimant) -> bool:
        if claimant.gang >= 0 and sum(claimant.tasks) < self._gangs.least[claimant.gang]:
            return False  # some of it are not there: it could not start
        lapse = self.lapsed.get(self._name(claimant))
        return lapse is None or self._now >= lapse.again_at

    def _fits_now(self, claimant: Claimant) -> bool:
        """Whether there is room: then the claimant waits for something else, and nothing need be kept."""
        sources = self._board.sources
        sources.keeping = False
        fits = claimant.gang < 0 and self._any_fits(np.array(claimant.rows))
        sources.keeping = True
        return fits

    def _any_fits(self, rows: Rows, nodes: Rows | None = None) -> bool:
        near, far = self._board.room.fits(rows, np.arange(self._board.free.shape[1]) if nodes is None else nodes)
        return bool((near | far).any())

    def _rows_of(self, reservation: Reservation) -> Rows:
        rows = self._board.snapshot.layout.rows
        return np.array([rows[node] for node in reservation.nodes], dtype=np.intp)

    def _spare(self, claimant: Claimant) -> float:
        """Return which part of the cluster the claimant's queue may take and still be entitled to the claimant."""
        fairness = self._board.fairness
        if self._outranks_alone[claimant.row]:
            return 1.0
        queue = int(fairness.queue[claimant.row])
        saved = 0.0 if fairness.is_due(claimant.row) else float(self._takes(claimant).max())
        return max(fairness.queues.part.item(queue) - fairness.queues.share(queue) - saved, 0.0)

    def _is_entitled(self, claimant: Claimant) -> bool:
        fairness = self._board.fairness
        queue, takes = int(fairness.queue[claimant.row]), self._takes(claimant)
        if self._outranks_alone[claimant.row]:
            return True
        if not fairness.is_due(claimant.row):
            return fairness.queues.within_part(queue, takes)
        if fairness.queues.may_pass(queue, takes):
            return True
        part, alone = fairness.queues.part.item(queue), float(takes.max())
        excess = (alone if alone > part else fairness.queues.share(queue)) - part
        seconds = float(self._board.waiting.duration[list(claimant.rows)].max())
        return self.owed.get(self._name(claimant), 0.0) >= excess * seconds > 0

    def _takes(self, claimant: Claimant) -> Floats:
        tasks = np.array(claimant.tasks)[:, np.newaxis]
        return np.asarray((self._board.fairness.takes[list(claimant.rows)] * tasks).sum(axis=0))

    def _name(self, claimant: Claimant) -> str:
        return self._board.waiting.names[claimant.row]

    def _note_owed(self) -> None:
        """Add to what queues are owed that save for a large claimant, and have what they save count as theirs."""
        fairness, before = self._board.fairness, self._before
        seconds = min(max(self._now - before.planned_at, 0.0), _LONGEST_STEP_SECONDS)
        for name, owed in before.owed.items():
            row = self._row.get(name, -1)
            if row < 0 or not fairness.is_due(row):
                continue
            queue = int(fairness.queue[row])
            part = fairness.queues.part.item(queue)
            self.owed[name] = owed + max(part - fairness.queues.share(queue), _LEAST_SAVED * part) * seconds
        for name in {*self.owed, *before.reserved}:
            row = self._row.get(name, -1)
            if row < 0 or not fairness.is_due(row):
                continue
            claimant = self._claimant_of(row)
            if name in before.reserved or not self._is_entitled(claimant):
                fairness.queues.save(int(fairness.queue[row]), self._takes(claimant))

    def _note_lapse(self, name: str) -> None:
        before = self.lapsed.get(name)
        least = max(self._board.policy.starved_after, _LEAST_LAPSE_SECONDS)
        seconds = min(least if before is None else 2 * before.seconds, _LONGEST_LAPSE_SECONDS)
        self.lapsed[name] = Lapse(self._now + seconds, seconds)

    # -- starting and keeping

    def _starts(self, claimant: Claimant, preferred: Sequence[int]) -> bool:
        """Start the claimant, on the `preferred` nodes where it can; say whether that was done."""
        board, fairness = self._board, self._board.fairness
        queue, takes = int(fairness.queue[claimant.row]), self._takes(claimant)
        name, due = self._name(claimant), fairness.is_due(claimant.row)
        if claimant.gang >= 0:
            started = goes_whole(board, self._gangs, claimant.gang)
        else:
            board.sources.keeping = False
            started = _start(board, claimant.row, preferred, due=due)
            board.sources.keeping = True
        if started:
            if due and (name in self.owed or name in self._before.reserved):
                fairness.queues.save(queue, -takes)
            self.owed.pop(name, None)
            self.lapsed.pop(name, None)
        return started

    def _claim(self, claimant: Claimant) -> bool:
        """Keep room, or have the queue save for it; False where there is none to be kept."""
        board, name = self._board, self._name(claimant)
        if not self._is_entitled(claimant):
            room, _ = soonest_room(board, claimant, self._now)
            if room and board.fairness.is_due(claimant.row):
                self.owed.setdefault(name, 0.0)
            return bool(room)
        kept = float((self._reserved_parts() + self._takes(claimant)).max())
        if claimant.gang >= 0 and self._starts(claimant, ()):
            return True
        room, ends_at = soonest_room(board, claimant, self._now)
        if not room:
            return False
        if self.reserved and kept > board.policy.reservable + _ROUNDING:
            return True
        late = min(ends_at - self._now, _MOST_LATE_SECONDS)
        until = max(ends_at + late, self._now + max(board.policy.starved_after, _LEAST_LAPSE_SECONDS))
        names, nodes = board.waiting.names, board.snapshot.layout.names
        self.reserved[name] = Reservation(
            tuple((names[row], nodes[node], tasks) for row, node, tasks in room), until, ends_at
        )
        self._keep(self.reserved[name], 1.0)
        return True

    def _reserved_parts(self) -> Floats:
        """Return what is reserved by now, as parts of the cluster [R]."""
        return parts(self._board.reserved.sum(axis=1), self._board.classes.total)

    def _keep(self, reservation: Reservation, sign: float) -> None:
        """Take the room that is reserved from what others see as free, or give it back."""
        board = self._board
        for name, node_name, tasks in reservation.room:
            node, row = board.snapshot.layout.rows[node_name], self._row[name]
            amounts = sign * tasks * _demand_on(board, row, node)
            board.free[:, node] -= amounts
            board.reserved[:, node] += amounts


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
        started = board.start(row, node)
        board.sources.dead.discard(row)
        board.alive[row] = board.left[row] > 0
        if started:
            return True
    return False


def _demand_on(board: Board, row: int, node: int) -> Floats:
    """Return what a task takes of the node [R], reading there if it can."""
    near = board.classes.own[row] or board.sources.has_local(row, node)
    amounts = board.classes.here[row] if near else board.classes.away[row]
    return np.asarray(amounts)

"""What is free and who waits while a plan is made: what fits where, what it scores, what each start changes.

A matching (`policy.matching`) turns it step by step:

1. `nodes` finds the candidates: which classes fit on which nodes. It yields the nodes, as `Room.order` has them.
2. `best` looks at one node closely, scores its candidates, and picks the one whose turn it is.
3. `take` starts a task of that class: free resources, sources, shares and waits follow it.

`checkpoint` lets a gang be tried: what it returns takes everything back.
"""

from collections.abc import Callable, Iterator

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows, needs_fit
from extender.cluster.ledger.snapshot import LOWEST_PRIORITY, Snapshot
from extender.cluster.resources import DISK_READ_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX
from extender.cluster.waiting import Waiting
from extender.planner.better_nodes import BetterNodes
from extender.planner.candidates import Candidates, Fits, NodeCandidates
from extender.planner.fairness.turn import Fairness
from extender.planner.locality.delay import Locality
from extender.planner.locality.nearness import level_between
from extender.planner.locality.sources import Sources
from extender.planner.plan import Carried, Rating, Taken
from extender.planner.prepared import Prepared
from extender.planner.refusals import RefusedShuffles
from extender.planner.room import Room
from extender.planner.spreading import Spreading
from extender.planner.terms import Scores
from extender.planner.tuning import BUNDLE, MACHINE, Policy
from extender.policy.bundling import CLASSES, bundle
from extender.policy.locality import remote_factor

_NOBODY = (-1, -np.inf)


class Board:
    """One plan on its way; a `matching.Table`. It owns its arrays: resources [R, N], classes [C] or [C, N].

    `free` is what nodes have, without what is `reserved`; `left` how many tasks of each class wait; `alive` which
    classes may still go. While `patient` nobody starts farther from its input than it could; `spared` are the classes
    for which that made a difference. `most` is how many tasks the plan was asked for, None for all.
    """

    def __init__(
        self,
        policy: Policy,
        snapshot: Snapshot,
        waiting: Waiting,
        carried: Carried,
        classes: Prepared,
        *,
        now: float = 0.0,
    ) -> None:
        """Take what `prepared` made of this snapshot's layout and what waits."""
        self.policy, self.snapshot, self.waiting, self.classes = policy, snapshot, waiting, classes
        self.carried, self.taken = carried, Taken()
        self.most: int | None = None
        # 1. What is free for a pod of any priority, and what waits.
        self.free = classes.capacity - (snapshot.allocated + snapshot.in_flight).T
        nominated = snapshot.nominations.load(snapshot.allocated.shape, priority=LOWEST_PRIORITY, uid="")
        if nominated is not None:
            self.free -= nominated.T
        self.reserved: Floats = np.zeros(self.free.shape)
        self.left: Counts = waiting.count.astype(np.int64)
        self.alive = waiting.count > 0
        # 2. Who reads where, and who waits for a start near its input; None where nobody chooses.
        self.sources = Sources(
            classes,
            waiting.inputs,
            waiting.count,
            self.free,
            headroom=policy.headroom,
            excess=policy.source_excess,
        )
        self.locality: Locality | None = None
        if waiting.preferred is not None or (policy.locality_waits and classes.blocks.any()):
            self.locality = Locality(policy, waiting, classes, carried, now=now, sources=self.sources)
        self.room = Room(classes, self.sources, self.free, waiting.barred)
        # 3. Whose turn it is, and what everybody scores.
        self.fairness = Fairness(policy, waiting, classes.total, classes.whole)
        self.scores = Scores(policy, waiting, classes, self.free)
        # 4. What belongs to one matching.
        self.spared = np.zeros(len(self.left), dtype=np.bool_)
        self.patient = True
        self._factors = remote_factor(np.array([True, False]), penalty=policy.remote_penalty)  # elsewhere, and there
        self._better_nodes: BetterNodes | None = None
        if classes.shapes is not None and self.locality is None and policy.matching != BUNDLE:
            self._better_nodes = BetterNodes(classes, classes.shapes, self.room)
        self._bundling = policy.matching == BUNDLE and self.locality is None
        self._links_demanded = NETWORK_OUT_INDEX in classes.asked
        no_rows = np.zeros(0, dtype=np.intp)
        room = self.room  # not by way of the board itself: its arrays would stay until Python looks for cycles
        self._candidates = Candidates(no_rows, no_rows, lambda nodes: room.fits(no_rows, nodes))
        self._started_on: set[int] = set()
        self._latest: NodeCandidates | None = None
        self._refusals = RefusedShuffles(self.sources, self.taken, len(self.left))
        self._remembers_refusals = policy.matching == MACHINE and self.locality is None
        self.spreading: Spreading | None = None
        if waiting.shuffled is not None and self._remembers_refusals and waiting.behind is None:
            self.spreading = Spreading(classes, waiting.shuffled)

    def admit(self, classes: Mask) -> None:
        """Let only these classes [C] go from now on."""
        self.alive = classes & (self.left > 0)
        self.patient = True
        if self._better_nodes is not None:
            self._better_nodes.forget()
        self.fairness.among(np.where(self.alive, self.left, 0))

    def checkpoint(self) -> Callable[[], None]:
        """Return what takes back all that is taken and reserved from now on; `admit` is to be called anew then.

        It may be called again and again.
        """
        free, left, reserved = self.free.copy(), self.left.copy(), self.reserved.copy()
        undo_parts = [
            part.checkpoint()
            for part in (self.sources, self.fairness, self.taken, self.locality, self.scores.progress)
            if part is not None
        ]

        def undo() -> None:
            self.free[:], self.left[:], self.reserved[:] = free, left, reserved
            for undo_part in undo_parts:
                undo_part()

        return undo

    # What a matching asks for

    def nodes(self) -> Iterator[int]:
        """Yield the nodes where something fits, in the order of `Room.order`.

        While patient, nobody reads from elsewhere what could start beside its block, or farther from it than it could.
        Afterwards it is only about the classes that this kept back.
        """
        self._latest = None
        # 1. The classes that may go, and the nodes that have room for the least that any of them demands.
        rows = (self.alive if self.patient else self.spared & self.alive).nonzero()[0]
        nodes = self.room.with_room(rows)
        if self.spreading is not None:
            self.spreading.begin(self.left, len(nodes))
        if not len(nodes):
            return
        # 2. One node after the other, as long as it has a candidate left.
        self._candidates = Candidates(rows, nodes, self._fits(rows, nodes))
        self._started_on.clear()
        self._refusals.forget()
        # 3. Where all that fit are shuffles whose sources have no room, nobody would start.
        for node in self._candidates.in_order(self.room.order(nodes)):
            if not (self._refusals and self._refusals.has_all(self._candidates.rows_at(node), node)):
                yield node

    def _fits(self, rows: Rows, nodes: Rows) -> Fits:
        """Return what says where these classes fit, reading there or from elsewhere, by places in these nodes."""
        # 1. Who reads where it runs asks about one node at a time: others take nothing of it before.
        room = self.room
        if self.classes.own[rows].all() and (self.locality is None or not self.patient):
            self.spared[rows] &= not self.patient
            return lambda places: room.fits(rows, nodes[places])
        # 2. While patient: only as near to its input as it can start anywhere now.
        near, far = room.fits(rows, nodes)
        if self.patient and self.locality is not None:
            farther = self.locality.farther(rows, nodes, near, far)
            self.spared[rows] = farther.any(axis=1)
            near, far = near & ~farther, far & ~farther
        elif self.patient:
            self.spared[rows] = self.classes.blocks[rows] & near.any(axis=1)
            far &= ~self.spared[rows, np.newaxis]
        return lambda places: (near[:, places], far[:, places])

    def offer_all(self) -> None:
        """Let `nodes` yield also those farther from somebody's input than others where it fits."""
        self.patient = False
        self.spared[:] = True

    def best(self, node: int) -> tuple[int, float]:
        """Return the class that scores highest on the node of those whose turn it is, and its score."""
        candidates = self._latest
        if candidates is None or candidates.node != node:
            candidates = self._latest = self._look(node)
        few = 0 < candidates.fitting <= len(self._refusals)
        if few and self._refusals.has_all(candidates.rows[candidates.fits], node):
            candidates.picked = -1
            return _NOBODY
        score = self._pick(candidates)
        return (int(candidates.rows[candidates.picked]), score) if candidates.picked >= 0 else _NOBODY

    def rate(self, task_class: int, node: int) -> Rating | None:
        """Return how one of the `nodes` rates for a class now; None where it does not fit."""
        candidates = self._look(node)
        places = (candidates.rows == task_class).nonzero()[0].tolist()
        if not places:
            return None
        scores, aligned = self.scores.of(candidates)
        score = float(scores[places[0]] - self.scores.before.item(task_class))
        alignment = float(aligned[places[0]])
        factor = 1.0 if candidates.factor is None else float(candidates.factor[places[0]])
        order = self.scores.progress.factor.item(task_class)
        return Rating(node, score, alignment, factor, alignment - score, order)

    def picked(self, node: int) -> Floats:
        """Return what a task of the class that `best` has just picked takes of the node [R]."""
        candidates = self._latest or self._look(node)
        return np.asarray(np.maximum(candidates.needs[candidates.picked], 0.0))

    def refuse(self, node: int) -> None:
        """Leave the class that `best` has just picked out on the node."""
        (self._latest or self._look(node)).leave_out()

    def take(self, task_class: int, node: int) -> bool:
        """Start one task of the class on the node; False if its sources have no room for it after all."""
        candidates = self._latest
        picked = -1 if candidates is None or candidates.node != node else candidates.picked
        if candidates is None or picked < 0 or candidates.rows.item(picked) != task_class:
            self._latest = None  # nobody asked for the best on this node: what it scores is not known
            return self._place(task_class, node, near=self.room.reads_there(task_class, node), compared=True)
        if self._refusals and self._refusals.has(task_class, node):
            self._candidates.leave_out_on(node, task_class)
            candidates.leave_out()
            return False
        if self.locality is not None:
            self.locality.pass_over(candidates)
        better = -1 if self._better_nodes is None else self._better_nodes.node_for(task_class, node)
        if better >= 0 and self._goes_next(task_class, better):
            self._place(task_class, better, near=True, compared=True)
            self._latest = candidates
            if not self.left[task_class]:
                candidates.leave_out()
            return True
        self._latest = candidates
        near = bool(candidates.near.item(picked))
        started = self._place(task_class, node, near=near, compared=True)
        if started:
            candidates.follow(self.room.limit(node))
            if candidates.in_bundle > 0:
                candidates.bundle[picked] -= 1
        no_block_left = near and not self.sources.has_local(task_class, node)
        enough = started and self.spreading is not None and self.spreading.count_start(task_class, node)
        if not started or not self.left[task_class] or no_block_left or enough:
            candidates.leave_out()
        if started and self.locality is not None and self.locality.nearness.is_long[task_class]:
            self._latest = None  # the node may now run too many long tasks to count as near
        return started

    def start(self, task_class: int, node: int) -> bool:
        """Start one task of a class, where it fits, without comparing it with others."""
        self._latest = None
        return self._place(task_class, node, near=self.room.reads_there(task_class, node), compared=False)

    def _goes_next(self, task_class: int, node: int) -> bool:
        """Say whether it is the turn of a class on a node too; that is then looked at last."""
        self._latest = self._look(node)
        self._pick(self._latest)
        return self._latest.picked >= 0 and self._latest.rows.item(self._latest.picked) == task_class

    # One node

    def _look(self, node: int) -> NodeCandidates:
        """Return the candidates of the node as it is now."""
        # 1. Of the classes that fitted when the matching began, those that still do, and what each takes of the node:
        #    who reads there takes of its disk, the others of its link.
        classes = self.classes
        rows, near, far = self._candidates.at(node)
        needs = self._needs(rows, near)
        fits = self._still_fit(needs, node)
        if classes.block_rows:
            has_block = self.sources.local(rows, node) > 0
            fits &= has_block >= near  # the last block that was there may be taken
        if np.count_nonzero(fits) < len(rows):
            near &= fits
            fits = near | (far & self._still_fit(classes.away_needs.take(rows, axis=0), node))
            rows, near = rows[fits], near[fits]
            needs = self._needs(rows, near)
        # 2. Who reads from elsewhere is worth less.
        factor = self._factors.take(near) if np.count_nonzero(near) < len(rows) else None
        candidates = NodeCandidates(node, rows, near, needs, classes.alignment_scale[:, node], factor)
        # 3. How far from their input they would start, and where they stand in line.
        if self.locality is not None and (remote := self.locality.look(candidates)).any():
            candidates.factor = remote_factor(remote, penalty=self.policy.remote_penalty)
        if self.waiting.behind is not None:
            candidates.line_up(self.waiting.job[rows], self.waiting.behind[rows])
        return candidates

    def _needs(self, rows: Rows, near: Mask) -> Floats:
        """Return what these classes need of a node [k, R]; `near` [k] says who reads there."""
        classes, reading_there = self.classes, np.count_nonzero(near)
        if reading_there == len(rows):
            return classes.here_needs.take(rows, axis=0)
        away = rows + len(self.left)
        return classes.ways_needs.take(np.where(near, rows, away) if reading_there else away, axis=0)

    def _still_fit(self, needs: Floats, node: int) -> Mask:
        """Return which of the `needs` [k, R] the node still has room for, of those that it had when the matching began.

        Where nothing started since, others can only have taken of its disk (and link).
        """
        if node in self._started_on or self._links_demanded:
            return needs_fit(self.room.limit(node), needs)
        return np.asarray(needs[:, DISK_READ_INDEX] <= self.room.disk_limit(node))

    def _pick(self, candidates: NodeCandidates) -> float:
        """Pick who goes next, the one with the highest score of those whose turn it is; return that score."""
        candidates.picked = -1
        if not candidates.fitting:
            return -np.inf
        scores, aligned = candidates.scores, candidates.aligned
        if self.locality is None and candidates.fitting == 1 and not self._bundling:
            scores, aligned = self.scores.of(candidates)
            candidates.picked = int(candidates.fits.argmax())  # whose turn it is does not matter
        elif self.locality is None:
            able = self.fairness.first(candidates, candidates.heads(candidates.fits))
            going = self._of_bundle(candidates, able) if self._bundling and candidates.in_bundle else None
            if going is None:
                scores, aligned, going = *self.scores.of(candidates), able
            places = going.nonzero()[0]
            candidates.picked = int(places[scores[places].argmax()])
        else:
            scores, aligned = self.scores.of(candidates)
            candidates.picked = self.locality.pick(candidates, scores, self.fairness)
        if candidates.picked < 0:
            return -np.inf
        candidates.score, candidates.alignment = scores.item(candidates.picked), aligned.item(candidates.picked)
        return candidates.score

    def _of_bundle(self, candidates: NodeCandidates, able: Mask) -> Mask | None:
        """Return the `able` candidates [k] of the set chosen for the node that are still to go; None once nobody is.

        It is chosen when the node is looked at, among those that are able then. Others go one by one after it. Scores
        count from the lowest sum of terms: else few tasks would be worth more than many, only because each loses
        something by its terms.
        """
        if candidates.in_bundle < 0:
            candidates.scores, candidates.aligned = self.scores.of(candidates)
            candidates.bundle = np.zeros(len(candidates.rows), dtype=np.int64)
            places = able.nonzero()[0]
            places = places[np.argsort(-candidates.scores[places], kind="stable")[:CLASSES]]
            if len(places) > 1:
                taken_off = 0.0 if candidates.points is None else candidates.points[places].min()
                candidates.bundle[places] = bundle(
                    candidates.scores[places] - taken_off,
                    candidates.needs[places],
                    self.room.limit(candidates.node),
                    self._most(candidates, places),
                )
        going = able & (candidates.bundle > 0)
        candidates.in_bundle = int(np.count_nonzero(going))
        return going if candidates.in_bundle else None

    def _most(self, candidates: NodeCandidates, places: Rows) -> Counts:
        """Return how many tasks of these candidates wait, of those that read there how many can [k]."""
        rows = candidates.rows[places]
        waiting = self.left[rows]
        can_read = np.minimum(waiting, self.sources.local(rows, candidates.node))
        return np.where(candidates.near[places], can_read, waiting)

    # Accounts

    def _place(self, task_class: int, node: int, *, near: bool, compared: bool) -> bool:
        """Take what a task needs of the node, and of its sources; False, and its class is out, if they have no room."""
        # 1. Its sources, from the nearest nodes that its job may read from.
        locality = self.locality
        within = locality.within(task_class, node) if locality is not None and not near else ()
        taken = self.sources.take(task_class, node, near=near, within=within)
        if taken is None:
            self._without_source(task_class, node, compared=compared)
            return False
        task, source = taken
        # 2. The node.
        free = self.free[:, node]
        free -= (self.classes.here if near else self.classes.away)[task_class]
        if source < 0 and not near:  # a shuffle: its links were taken with its sources
            free[NETWORK_IN_INDEX] += self.classes.reading[task_class]
        self._started_on.add(node)
        self.left[task_class] -= 1
        if not self.left[task_class]:
            self._out(task_class)
        # 3. How near to its input it starts, and for how long its job was passed over for that.
        passed_over = 0.0
        if locality is not None:
            passed_over = locality.passed_over(task_class)
            level = locality.start(task_class, node, source, near=near)
        else:
            level = 0 if near or source < 0 else level_between(self.waiting.topology, node, source)
        # 4. Why it starts, and then what its job and queue have by it.
        terms = self.scores.terms(
            task_class,
            self.fairness,
            self._latest if compared else None,
            self._factors.item(0) if level > 0 or not near else 1.0,
            level,
            passed_over,
        )
        self.taken.add((task_class, node, task, source), terms)
        self.fairness.count(task_class)
        self.scores.progress.start(task_class)
        return True

    def _without_source(self, task_class: int, node: int, *, compared: bool) -> None:
        """Leave a class out whose input nobody can serve: on this node, or for good where that holds for all nodes."""
        if self.locality is not None:
            self.locality.found_no_source(task_class)
        if self.sources.nobody_can(task_class):
            self._out(task_class)
        elif compared:
            self._candidates.leave_out_on(node, task_class)
            if self._remembers_refusals and self.classes.shuffles[task_class]:
                self._refusals.note(task_class)

    def _out(self, task_class: int) -> None:
        """Leave a class out from now on."""
        self.alive[task_class] = False
        self._candidates.leave_out(task_class)

"""Free resources and waiting classes while a plan is made: what fits where, what it scores, what taking it changes."""

from collections.abc import Iterator

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.resources import DISK_READ_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX
from extender.cluster.waiting import Waiting
from extender.planner.fairness.turn import Fairness
from extender.planner.fitting import Fitting, within, within_disk
from extender.planner.locality.delay import Locality
from extender.planner.locality.nearness import level_between
from extender.planner.locality.sources import Sources
from extender.planner.plan import Carried
from extender.planner.prepared import Prepared
from extender.planner.scores import Scores
from extender.planner.taken import Taken
from extender.planner.tuning import DEFICIT, Policy
from extender.planner.visit import Visit
from extender.policy.locality import remote_factor

_NOBODY = (-1, -np.inf)
_UNLIMITED = -(2**31)


class Board:
    """One plan on its way; a `matching.Table`. Its own arrays, nobody else's: resources [R, N], classes [C, N]."""

    def __init__(
        self,
        policy: Policy,
        snapshot: Snapshot,
        waiting: Waiting,
        carried: Carried,
        classes: Prepared,
        now: float = 0.0,
    ) -> None:
        """Take what `prepared` made of this snapshot's layout and what waits."""
        self.policy, self.snapshot, self.waiting, self.classes = policy, snapshot, waiting, classes
        self.carried, self.taken = carried, Taken()
        self.most: int | None = None
        self.free = classes.capacity - (snapshot.allocated + snapshot.in_flight).T
        nominated = snapshot.nominations.load(snapshot.allocated.shape, priority=_UNLIMITED, uid="")
        if nominated is not None:
            self.free -= nominated.T
        self.reserved: Floats = np.zeros(self.free.shape)
        self.left = waiting.count.tolist()
        self.alive = waiting.count > 0
        self.sources = Sources(classes, waiting.inputs, waiting.count, self.free, headroom=policy.headroom)
        self.locality: Locality | None = None
        if waiting.preferred is not None or (policy.locality_waits and classes.blocks.any()):
            self.locality = Locality(policy, waiting, classes, carried, now, self.sources.local)
        self.fairness = Fairness(policy, waiting.jobs, classes.total, waiting.job, waiting.count, classes.whole)
        if policy.sharing == DEFICIT:
            self.fairness.carry(np.array([carried.deficits.get(name, 0.0) for name in waiting.jobs.names]))
        self.scores = Scores(policy, waiting, classes, self.free)
        self.spared = np.zeros(len(self.left), dtype=np.bool_)
        self.patient = True
        self._factors = remote_factor(np.array([True, False]), penalty=policy.remote_penalty)  # elsewhere, and there
        self._links_demanded = NETWORK_OUT_INDEX in classes.asked
        nobody, nowhere = np.zeros(0, dtype=np.intp), np.zeros((0, 0), dtype=np.bool_)
        self._fitting = Fitting(nobody, nobody, nowhere, nowhere)
        self._used: set[int] = set()
        self._visit: Visit | None = None
        self._latest = (0.0, 0.0)

    def admit(self, classes: Mask) -> None:
        """Let only these classes [C] go from now on."""
        self.alive = classes & (np.array(self.left) > 0)
        self.patient = True
        self.fairness.among(np.where(self.alive, self.left, 0))

    # What matching asks for

    def nodes(self) -> Iterator[int]:
        """Yield the nodes where something fits, those with the most room first.

        While patient, nobody reads from elsewhere what could start beside its block, or farther from it than it could;
        afterwards it is only about them.
        """
        self._visit = None
        rows = (self.alive if self.patient else self.spared & self.alive).nonzero()[0]
        nodes = self.with_room(rows)
        if not len(nodes):
            return
        near, far = self.fits(rows, nodes)
        if self.patient and self.locality is not None:
            farther = self.locality.farther(rows, nodes, near, far)
            self.spared[rows] = farther.any(axis=1)
            near, far = near & ~farther, far & ~farther
        elif self.patient:
            self.spared[rows] = self.classes.blocks[rows] & near.any(axis=1)
            far &= ~self.spared[rows, np.newaxis]
        self._fitting = Fitting(rows, nodes, near, far)
        self._used.clear()
        yield from self._fitting.in_order(self.room(nodes))

    def offer_all(self) -> None:
        """Let `nodes` yield also those farther from somebody's input than others where it fits."""
        self.patient = False
        self.spared[:] = True

    def best(self, node: int) -> tuple[int, float]:
        """Return the class that scores highest on the node, and its score."""
        visit = self._visit
        if visit is None or visit.node != node:
            visit = self._visit = self._look(node)
        score = self._pick(visit)
        return (int(visit.rows[visit.picked]), score) if visit.picked >= 0 else _NOBODY

    def rate(self, task_class: int, node: int) -> tuple[float, float, float] | None:
        """Return what a class scores on one of the `nodes` now, its alignment, and the remote penalty's factor in that.

        None where it does not fit.
        """
        visit = self._look(node)
        places = (visit.rows == task_class).nonzero()[0].tolist()
        if not places:
            return None
        scores, aligned = self.scores.of(visit)
        score = scores[places[0]] - self.scores.before.item(task_class)
        return (
            float(score),
            float(aligned[places[0]]),
            float(visit.factor[places[0]]) if visit.factor is not None else 1.0,
        )

    def take(self, task_class: int, node: int) -> bool:
        """Place one task of the class on the node."""
        visit = self._visit
        if visit is None or visit.node != node or visit.picked < 0 or visit.rows[visit.picked] != task_class:
            self._visit = None
            return self._place(task_class, node, near=self._reads_there(task_class, node), alone=False)
        if self.locality is not None:
            self.locality.pass_over(visit)
        taken = self._place(task_class, node, near=bool(visit.near[visit.picked]), alone=False)
        if taken:
            visit.follow(self._limit(node))
        if (
            not taken
            or not self.left[task_class]
            or (visit.near[visit.picked] and not self.sources.local[task_class, node])
        ):
            visit.leave_out()
        return taken

    def start(self, task_class: int, node: int) -> bool:
        """Place one task of a class, where it fits, without comparing it with others."""
        self._visit = None
        return self._place(task_class, node, near=self._reads_there(task_class, node), alone=True)

    def room(self, nodes: Rows) -> Floats:
        """Return how much these nodes have free, their dimensions added up as parts of their capacity."""
        per_unit = self.classes.per_unit[:, nodes]
        return np.asarray((np.where(per_unit > 0, self.free[:, nodes], 0.0) * per_unit).sum(axis=0))

    def fits(self, rows: Rows, nodes: Rows) -> tuple[Mask, Mask]:
        """Return where these classes fit reading there, and where reading from elsewhere, [rows, nodes] each."""
        free, sources, classes = self.free.take(nodes, axis=1), self.sources, self.classes
        demand = classes.demand_needs.take(rows, axis=1)[:, :, np.newaxis]
        fits = self.allowed(rows, nodes)
        for resource in classes.asked:
            fits &= free[resource] >= demand[resource]
        disk = free[DISK_READ_INDEX] - sources.kept[nodes] if sources.keeping else free[DISK_READ_INDEX]
        near = fits & (disk >= classes.here_needs[:, DISK_READ_INDEX][rows, np.newaxis])
        near &= sources.local[rows[:, np.newaxis], nodes] > 0
        far = np.zeros_like(near)
        others = (~classes.own[rows]).nonzero()[0]
        if len(others):
            of = rows[others]
            can_read = sources.able(of, nodes) & (
                free[NETWORK_IN_INDEX] >= classes.away_needs[:, NETWORK_IN_INDEX][of, np.newaxis]
            )
            far[others] = can_read & fits[others]
        return near, far

    def allowed(self, rows: Rows, nodes: Rows) -> Mask:
        """Return on which of these nodes these classes may go at all [rows, nodes]."""
        barred = self.waiting.barred
        return np.ones((len(rows), len(nodes)), dtype=np.bool_) if barred is None else ~barred[np.ix_(rows, nodes)]

    def with_room(self, rows: Rows) -> Rows:
        """Return the nodes that have at least what the least of these classes demands of each resource."""
        if not len(rows):
            return rows
        has, least = (
            np.ones(self.free.shape[1], dtype=np.bool_),
            self.classes.demand_needs.take(rows, axis=1).min(axis=1).tolist(),
        )
        for resource in self.classes.asked:
            has &= self.free[resource] >= least[resource]
        return np.asarray(has.nonzero()[0])

    # One node

    def _look(self, node: int) -> Visit:
        """Return the classes that fit on the node now.

        What others took since `nodes` looked at all of them can only be of its disk and link, or its last blocks,
        unless something was placed there.
        """
        classes, limit = self.classes, self._limit(node)
        able = within if node in self._used or self._links_demanded else within_disk
        rows, near, far = self._fitting.at(node)
        near &= able(classes.here_needs, rows, limit)
        near &= self.sources.local[:, node][rows] > 0
        factor = None
        if np.count_nonzero(near) < len(rows):
            fits = near | (far & able(classes.away_needs, rows, limit))
            rows, near = rows[fits], near[fits]
        needs = classes.here_needs.take(rows, axis=0)
        if np.count_nonzero(near) < len(rows):
            needs = np.where(near[:, np.newaxis], needs, classes.away_needs.take(rows, axis=0))
            factor = self._factors.take(near)
        visit = Visit(node, rows, near, needs, classes.per_unit[:, node], factor)
        if self.locality is not None and (remote := self.locality.look(visit)).any():
            visit.factor = remote_factor(remote, penalty=self.policy.remote_penalty)
        if self.waiting.behind is not None:
            visit.line_up(self.waiting.job[rows], self.waiting.behind[rows])
        return visit

    def _pick(self, visit: Visit) -> float:
        """Settle which class goes next, and return its score: the highest of those whose turn it is."""
        visit.picked = -1
        if not visit.any:
            return -np.inf
        scores, aligned = self.scores.of(visit)
        if self.locality is None:
            able = self.fairness.first(visit, visit.heads(visit.fits)).nonzero()[0]
            picked = int(able[scores[able].argmax()])
        else:
            picked = self.locality.pick(visit, scores, self.fairness)
        visit.picked = picked
        if picked < 0:
            return -np.inf
        score = scores.item(picked)
        self._latest = score - self.scores.before.item(visit.rows[picked]), aligned.item(picked)
        return float(score)

    def _limit(self, node: int) -> Floats:
        """Return what a task may take of the node [R]: what is free, but for the disk read kept for shuffles."""
        limit = self.free[:, node].copy()
        if self.sources.keeping:
            limit[DISK_READ_INDEX] -= self.sources.kept[node]
        return limit

    def _reads_there(self, task_class: int, node: int) -> bool:
        """Whether a task of the class would read there."""
        if self.classes.own[task_class]:
            return True
        return bool(self.sources.local[task_class, node]) and bool(
            (self.classes.here_needs[task_class] <= self._limit(node)).all()
        )

    # Accounts

    def _place(self, task_class: int, node: int, *, near: bool, alone: bool) -> bool:
        """Take a task's demand of the node, and of its sources; False, and its class is out, if they have no room."""
        locality = self.locality
        within = locality.within(task_class, node) if locality is not None and not near else ()
        found = self.sources.take(task_class, node, near=near, within=within)
        if found is None:
            if locality is not None:
                locality.found_no_source(task_class)
            if self.sources.nobody_can(task_class):
                self.sources.dead.add(task_class)
                self._out(task_class)
            elif not alone:
                self._fitting.leave_out_on(node, task_class)
            return False
        task, source = found
        free = self.free[:, node]
        free -= (self.classes.here if near else self.classes.away)[task_class]
        if source < 0 and not near:  # a shuffle: its links were taken with its sources
            free[NETWORK_IN_INDEX] += self.classes.reading[task_class]
        self.left[task_class] -= 1
        if not self.left[task_class]:
            self._out(task_class)
        passed_over = 0.0
        if locality is not None:
            passed_over = locality.passed_over(task_class)
            level = locality.start(task_class, node, source, near=near)
        else:
            level = 0 if near or source < 0 else level_between(self.waiting.topology, node, source)
        factor = self._factors.item(0) if level > 0 or not near else 1.0
        score, alignment = (0.0, 0.0) if alone else self._latest
        work, last = self.scores.work.item(task_class), self.scores.last.item(task_class)
        owed, due = self.fairness.owed_to(task_class), self.fairness.is_due(task_class)
        terms = (score, alignment, factor, work, owed, last, due, level, passed_over)
        self.taken.add((task_class, node, task, source), terms)
        self._used.add(node)
        self.fairness.count(task_class)
        return True

    def _out(self, task_class: int) -> None:
        """Leave a class out from now on."""
        self.alive[task_class] = False
        self._fitting.leave_out(task_class)

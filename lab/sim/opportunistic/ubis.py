"""UBIS in the simulator: it asks the functions that the cluster asks, on samples of what is used.

One decision, by algorithm 1 of the paper:

1. `take_back`: a new sample may show overloaded nodes, whose opportunistic tasks are evicted, as few as suffice. Who
   gets next to nothing on a full node is moved. Then opportunistic tasks become regular where regular room has
   appeared.
2. The scheduler plans regular work, as ever.
3. `fill`: what is left waiting is planned again, on idle room.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from extender.arrays import Floats, Mask, Rows, fits
from extender.cluster.resources import CPU, CPU_INDEX, NETWORK_IN_INDEX
from extender.cluster.stays_off import StaysOff
from extender.control.idle_room.class_use import ClassUse, while_running
from extender.control.idle_room.measured_use import MeasuredUse
from extender.control.idle_room.room import Thresholds
from extender.control.preemption.overload import Limits, Overload
from extender.control.preemption.starved import STARVED_TIMES, Squeezed, Starved, on_full_nodes
from extender.errors import DovetailError
from extender.planner import Policy
from extender.planner.opportunistic import Waits, nobody_before, promotions, second_pass, second_planner
from extender.policy import slack
from extender.policy.peak import auto_room
from extender.policy.shares import dominant_shares
from extender.policy.turn import sibling_keys
from lab.sim.engine.clock import empty_snapshot
from lab.sim.engine.contention import RATES
from lab.sim.engine.use.sampling import Seen
from lab.sim.engine.use.tasks import Tasks
from lab.sim.engine.world import World
from lab.sim.opportunistic.peaks import SimulatedPeaks
from lab.sim.schedulers.bound import without_rates

STARVED = "starved"


@dataclass(frozen=True, slots=True)
class UbisSettings:
    """`t_alloc`, a part of what each node has; `limits` has T_preempt; tasks of the jobs in `never` are regular only.

    Without `learns`, a task that is not measured yet counts with all that it demands, as in the paper; else with what
    its class has used. Without `io` disks and links are nobody's concern, as in the paper. `without_gone`: what a
    sample holds of tasks that have ended is taken off. With `auto` the predicted peak of each node stands for
    `t_alloc`, with a margin that is led by `budget`, evictions of an opportunistic task in an hour. Without `moves` who
    gets next to nothing stays where it is.
    """

    t_alloc: float = 0.8
    limits: Limits = field(default_factory=Limits.of)
    never: frozenset[str] = frozenset()
    learns: bool = True
    io: bool = True
    without_gone: bool = True
    auto: bool = False
    budget: float = 0.01
    moves: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.t_alloc <= 1:
            raise DovetailError(f"t_alloc: {self.t_alloc}; accepted: 0 to 1")


class Ubis:
    """Runs opportunistic tasks in a world; a `clock.Opportunism`.

    `evicted_for` counts evictions by the resource that was short on the node, and as `STARVED` those that were moved.
    """

    def __init__(self, settings: UbisSettings | None = None) -> None:
        self._settings = settings or UbisSettings()
        self._planner = second_planner(Policy())
        self._overload, self._stays_off = Overload(self._settings.limits), StaysOff()
        self._starved = Starved(STARVED_TIMES * self._settings.limits.samples[CPU])
        self.evicted_for: Counter[str] = Counter()
        self._looked: Seen | None = None
        self._wait_ends = np.inf

    def follow(self, world: World) -> None:
        """Take the world. Raises DovetailError where use is the promise."""
        usage = world.usage
        if usage is None or usage.sampling is None:
            raise DovetailError("nothing can be opportunistic where use is the promise: sampling is needed")
        self._world, self._usage = world, usage
        self._empty = empty_snapshot(self._usage.tasks.capacity)
        self._classes = ClassUse()
        self._peaks: SimulatedPeaks | None = None
        if self._settings.auto:
            names = dict(enumerate(world.table.names))
            self._peaks = SimulatedPeaks(self._empty.layout, usage.sampling, names, self._settings.budget)

    @property
    def again_at(self) -> float:
        """When the next sample will be known, or when somebody's wait for locality ends."""
        return min(self._usage.next_at(self._world.now), self._wait_ends)

    def take_back(self) -> None:
        """Evict by a new sample, then promote."""
        seen = self._usage.seen(self._world.now)
        if seen is not None and seen is not self._looked:
            self._looked = seen
            self._learn(seen)
            if self._peaks is not None:
                self._peaks.take(seen)
            self._evict(seen)
        self._promote()

    def fill(self) -> None:
        """Start opportunistic tasks of what waits, where idle room is."""
        world, seen = self._world, self._usage.seen(self._world.now)
        self._wait_ends = np.inf
        backlog = world.backlog
        if seen is None or not backlog.count.any():
            return
        room = self.idle_room(seen)
        waiting = backlog.waiting(world.tasks.for_reservations())
        if not self._settings.io:
            waiting = without_rates(waiting)
        names = self._empty.layout.names
        barred = self._stays_off.barred(waiting.names, names, world.now)
        if waiting.barred is not None:
            barred = barred | waiting.barred
        may = np.array(
            [waiting.jobs.names[job] not in self._settings.never for job in waiting.job.tolist()], dtype=bool
        )
        plan = second_pass(
            self._planner,
            replace(self._empty, allocated=world.allocated),
            room,
            replace(waiting, barred=barred if barred.any() else None),
            world.now,
            may=may,
        )
        self._wait_ends = plan.again_at
        if len(plan.assignments):
            world.start_opportunistic(plan.assignments)

    def idle_room(self, seen: Seen) -> Floats:
        """Return what opportunistic tasks may take of each node now [N, R]."""
        used = self._usage.tasks
        peaks = None if self._peaks is None else self._peaks.peaks(used.running, self._world.now)
        since = seen.since if peaks is None else min(seen.since, peaks.cutoff)
        whole = slack.measured_whole(used.running.began, since, seen.at)
        young = used.running.of(~whole)
        held, _ = seen.of(young.task)
        expected = young.demand.T
        if self._settings.learns:
            expected = self._classes.expected(young.stage, expected)
        expected = slack.at_least_measured(expected, held)
        given = used.on_nodes(young, expected.T, young.elsewhere)
        measured = used.on_nodes(young, held.T, self._held_of_sources(young, held)) + self._held_by_gone(seen)
        use = slack.ramped_up(seen.nodes, measured, given)
        if peaks is None:
            room = slack.idle_room(use, used.capacity, np.full(len(used.capacity), self._settings.t_alloc))
        else:
            most = Thresholds(None, evict_at=self._settings.limits.threshold).most(self._empty.layout)
            room = auto_room(most, np.maximum(use, peaks.on(self._empty.layout) + given))
        return room if self._settings.io else np.where(RATES, used.capacity, room)

    def _held_of_sources(self, young: Tasks, held: Floats) -> Floats:
        """Return what a sample holds on other nodes of young tasks that read there [P]: what each of them received."""
        return np.asarray(np.where(young.elsewhere > 0, held[:, NETWORK_IN_INDEX], 0.0))

    def _held_by_gone(self, seen: Seen) -> Floats:
        """Return what a sample holds of tasks that have ended since its window began [N, R]."""
        if not self._settings.without_gone:
            return np.zeros_like(seen.nodes)
        return seen.of_others(self._usage.tasks.running.task)

    def _learn(self, seen: Seen) -> None:
        """Take in what tasks were measured to use; those that do not run any more have ended."""
        running = self._usage.tasks.running
        use, known = seen.of(running.task)
        age = seen.at - running.began
        known &= age > 0
        task, age = running.task[known], age[known]
        use = while_running(use[known], age, seen.at - seen.since)
        self._classes.learn(task, running.stage[known], use, age)
        self._classes.end(np.setdiff1d(self._classes.pods, task))

    def _evict(self, seen: Seen) -> None:
        """Evict the fewest that bring overloaded nodes back, those first who lose the least work; move the starved."""
        layout = self._empty.layout
        at, since = (np.full(len(layout.names), moment) for moment in (seen.at, seen.since))
        measured = MeasuredUse(layout.names, layout.axis, seen.nodes, layout.capacity, since, at, seen.pressure)
        over = self._overload.look(measured)
        victims: dict[int, Rows] = {}
        for node in np.flatnonzero(over.any(axis=1)).tolist():
            chosen = self._chosen(node, over[node], seen)
            if len(chosen):
                worst = int((over[node] / layout.capacity[node]).argmax())
                self.evicted_for[layout.axis[worst]] += len(chosen)
                victims[node] = chosen
        if self._settings.moves:
            victims |= self._moved(measured, seen, victims)
        if victims:
            self._go(victims)

    def _chosen(self, node: int, over: Floats, seen: Seen) -> Rows:
        """Return who is evicted of a node that is `over` its limits by so much [R]."""
        running = self._usage.tasks.running
        on_node = np.flatnonzero((running.node == node) & running.opportunistic)
        use, _ = seen.of(running.task[on_node])
        chosen = slack.smallest_set(over, use, self._lost(running.of(on_node)), np.ones(len(on_node), dtype=np.bool_))
        if chosen is None:  # all together do not suffice: all that use what is short go
            chosen = np.flatnonzero((use[:, over > 0] > 0).any(axis=1))
        return on_node[chosen]

    def _moved(self, measured: MeasuredUse, seen: Seen, taken: Collection[int]) -> dict[int, Rows]:
        """Return who gets next to nothing, by node; nobody of the nodes that are `taken`."""
        running = self._usage.tasks.running
        given = np.flatnonzero(running.opportunistic)
        on_full = given[on_full_nodes(measured, running.node[given], running.began[given])]
        tasks = running.of(on_full)
        use, known = seen.of(tasks.task)
        usual = self._classes.expected(tasks.stage, np.zeros_like(use))[:, CPU_INDEX]
        use = np.where(known, use[:, CPU_INDEX], np.nan)
        squeezed = Squeezed(tasks.task.tolist(), tasks.node, use, usual, self._lost(tasks), np.ones_like(known))
        chosen = on_full[self._starved.look(measured, squeezed, taken)]
        self.evicted_for[STARVED] += len(chosen)
        return {int(running.node[place]): np.array([place]) for place in chosen.tolist()}

    def _lost(self, tasks: Tasks) -> Floats:
        """Return the work that each of these tasks would lose [P]."""
        return (self._world.now - tasks.began) * dominant_shares(tasks.demand.T, self._empty.layout.total)

    def _go(self, victims: Mapping[int, Rows]) -> None:
        """Evict these tasks, by the node that they leave."""
        names, now, running = self._empty.layout.names, self._world.now, self._usage.tasks.running
        for node, places in victims.items():
            self._overload.settle(names[node], now)
            for stage in running.stage[places].tolist():
                self._stays_off.note(self._world.table.names[stage], names[node], now)
        places = np.concatenate(list(victims.values()))
        if self._peaks is not None:
            self._peaks.note_evictions(running, places, now)
        self._world.evict(places)

    def _promote(self) -> None:
        """Make tasks regular that regular room holds where they are, unless somebody has an older claim to it."""
        used, world = self._usage.tasks, self._world
        given = np.flatnonzero(used.running.opportunistic)
        if not len(given):
            return
        tasks, free = used.running.of(given), used.capacity - used.allocated
        table, share = world.table, self._queue_shares()
        priority = np.zeros(len(given), dtype=np.int64) if table.priority is None else table.priority[tasks.stage]
        own = share[table.job_queue[table.job[tasks.stage]]]
        may = nobody_before(priority, own, tasks.node, self._waiting(share, free), len(free))
        chosen = promotions(free, tasks.node, tasks.demand.T, tasks.began, may=may)
        chosen = self._with_sources(tasks, chosen, free)
        if len(chosen):
            world.promote(given[chosen])

    def _with_sources(self, tasks: Tasks, chosen: Rows, free: Floats) -> Rows:
        """Return those chosen whose sources have regular room as well."""
        if not tasks.elsewhere[chosen].any():
            return chosen
        left, held = free.copy(), []
        for place in chosen.tolist():
            task = tasks.of(np.array([place]))
            needs = self._usage.tasks.on_nodes(task, task.demand, task.elsewhere)
            if ((needs <= left) | (needs <= 0)).all():
                left -= needs
                held.append(place)
        return np.array(held, dtype=np.intp)

    def _queue_shares(self) -> Floats:
        table = self._world.table
        held = np.zeros((len(table.queue_names), self._usage.tasks.capacity.shape[1]))
        np.add.at(held, table.job_queue, self._world.job_allocated)
        shares = dominant_shares(held, self._empty.layout.total)
        return sibling_keys(shares, shares, table.queue_weight, np.zeros(len(shares)))

    def _waiting(self, share: Floats, free: Floats) -> Iterator[Waits]:
        """Yield what waits, given the shares of queues [Q] and what is free as regular [N, R]."""
        backlog, table = self._world.backlog, self._world.table
        waits = backlog.count > 0
        for stage, needs in zip(backlog.classes[waits].tolist(), backlog.task_demand[waits], strict=True):
            rank = 0 if table.priority is None else table.priority.item(stage)
            yield rank, share.item(table.job_queue[table.job[stage]]), partial(self._fitting, stage, needs, free)

    def _fitting(self, stage: int, needs: Floats, free: Floats) -> Mask:
        """Return on which nodes a task of a stage fits and may run [N]."""
        table, fitting = self._world.table, fits(free, needs)
        return fitting if table.constraint is None else fitting & table.allowed[table.constraint[stage]]

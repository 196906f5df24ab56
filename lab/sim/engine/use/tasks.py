"""The running tasks of a run in which use is not the promise: `running.RunningTasks` with profiles and a second class.

Arrays over the running tasks [P]; their order has no meaning. Each of a task's terms (computing, writing, reading) has
a progress of its own, and uses what its phase says. Memory follows the slowest term. What a regular task was promised
stays allocated until it ends; an opportunistic one is allocated nothing.

The life of a task: `start`; then at each step `end_due` (progress until now, who has ended), and `share` (the phases,
what each wants, which part of it each gets, and when the next phase ends). `promote` makes it regular; `take_away` ends
it before its time.
"""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.resources import (
    CPU_INDEX,
    DIMENSIONS,
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    MEMORY_INDEX,
    NETWORK_OUT_INDEX,
)
from extender.cluster.waiting import Running
from lab.sim.engine.contention import TERM_COLUMNS, TERMS, spread_part, term_rates
from lab.sim.engine.outputs import add_copies, add_on_all_nodes, copying_rate
from lab.sim.engine.running import DONE_SECONDS, Ends, Promised, Starts
from lab.sim.engine.use.peak_estimates import ramp_up_allowance
from lab.sim.engine.use.profiles import Profiles
from lab.sim.engine.use.shares import kept_cpu, killed, parts

_T, _R = len(TERMS), len(DIMENSIONS)
_READ, _WRITE, _OUT, _MEMORY = DISK_READ_INDEX, DISK_WRITE_INDEX, NETWORK_OUT_INDEX, MEMORY_INDEX
_CORE = 1000.0
_TERM = TERM_COLUMNS.argmax(axis=0)
"""The term that takes each dimension [R]; of memory it says nothing."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks that run [P]: from `Starts`, with what changes as they go on.

    `began` is when, `held` who only keeps its memory until its gang begins, `opportunistic` what they are now; those
    that were so at the start go `first` where memory is short, as their rank with the kernel stays. `progress`, `rate`
    [3, P]; `ends` [3, P] is when each term is done at its rate. `want` [R, P] and `want_elsewhere` [P] are what they
    would use now, `used` [R, P] what they have used so far (memory in byte-seconds). `promised` [R, P] and
    `promised_elsewhere` [P] are what is allocated to them: `demand` and `elsewhere`, what they declare, or an estimate.
    `peak` [R, P] is the most that each was seen to use of what it was not short of; disk-read is all that it reads.
    """

    stage: Rows
    task: Rows
    node: Rows
    source: Rows
    rates_row: Rows
    demand: Floats
    elsewhere: Floats
    copies: Rows
    seconds: Floats
    expected: Floats
    began: Floats
    held: Mask
    opportunistic: Mask
    first: Mask
    progress: Floats
    rate: Floats
    ends: Floats
    want: Floats
    want_elsewhere: Floats
    used: Floats
    promised: Floats
    promised_elsewhere: Floats
    peak: Floats

    def of(self, chosen: Mask | Rows) -> "Tasks":
        """Return these of them."""
        rows = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        return Tasks(*(getattr(self, name).take(rows, axis=-1) for name in self.__slots__))

    def with_more(self, more: "Tasks") -> "Tasks":
        """Return them and others after them."""
        pairs = ((getattr(self, name), getattr(more, name)) for name in self.__slots__)
        return Tasks(*(np.concatenate(pair, axis=-1) for pair in pairs))


def _begun(starts: Starts, now: float, *, opportunistic: bool) -> Tasks:
    count = len(starts.stage)
    marks = np.full(count, opportunistic)
    promised = starts.promised or Promised(starts.node_demand, starts.elsewhere)
    return Tasks(
        stage=starts.stage,
        task=starts.task,
        node=starts.node,
        source=starts.source,
        rates_row=starts.rates_row,
        demand=starts.node_demand,
        elsewhere=starts.elsewhere,
        copies=starts.copies,
        seconds=starts.seconds,
        expected=starts.expected,
        began=np.full(count, now),
        held=np.zeros(count, dtype=np.bool_),
        opportunistic=marks,
        first=marks.copy(),
        progress=np.zeros((_T, count)),
        rate=np.ones((_T, count)),
        ends=np.tile(now + starts.seconds, (_T, 1)),
        want=np.zeros((_R, count)),
        want_elsewhere=np.zeros(count),
        used=np.zeros((_R, count)),
        promised=promised.demand,
        promised_elsewhere=promised.elsewhere,
        peak=np.zeros((_R, count)),
    )


_NO_ROWS, _NO_FLOATS = np.empty(0, dtype=np.intp), np.empty(0)


def _nothing(copies: int) -> Starts:
    """Return no starts at all; an output has at most this many `copies` on other machines."""
    return Starts(
        stage=_NO_ROWS,
        task=_NO_ROWS,
        node=_NO_ROWS,
        source=_NO_ROWS,
        rates_row=_NO_ROWS,
        node_demand=np.empty((_R, 0)),
        elsewhere=_NO_FLOATS,
        copies=np.empty((copies, 0), dtype=np.intp),
        seconds=_NO_FLOATS,
        expected=_NO_FLOATS,
    )


class UsedTasks:
    """The running tasks on machines of this `capacity` [N, R]; `rates` [., N] are what shuffles read (inputs.Pool).

    `allocated` [N, R] is what was promised to regular tasks, `demand` what all want of each machine now, `use_on` what
    they really use of it. `waits` [N] is for which part of the time regular tasks wait for CPU now: they get the rest.
    With `measure` it is known of tasks that end what they used at their peak.
    """

    def __init__(
        self,
        capacity: Floats,
        profiles: Profiles,
        *,
        loss: float,
        copies: int = 0,
        io_first: bool = True,
        cpu_weight: float = 0.0,
        measure: bool = False,
    ) -> None:
        self.capacity = capacity
        self.allocated = np.zeros_like(capacity)
        self.demand = np.zeros_like(capacity)
        self.use_on = np.zeros_like(capacity)
        self.waits = np.zeros(len(capacity))
        self.rates = np.zeros((0, len(capacity)))
        self.running = _begun(_nothing(copies), 0.0, opportunistic=False)
        self._profiles, self._loss, self._io_first = profiles, loss, io_first
        self._cpu_weight, self._measure = cpu_weight, measure
        self._settled = 0.0
        self._next_at = np.inf

    @property
    def count(self) -> int:
        """How many tasks run."""
        return len(self.running.stage)

    @property
    def tasks(self) -> Rows:
        """The running tasks; their order has no meaning."""
        return self.running.task.copy()

    @property
    def next_at(self) -> float:
        """When the next phase of a task is over if nothing else happens; infinite if none ever is."""
        return self._next_at

    @property
    def regular_stages(self) -> Rows:
        """The stage of each task of `for_reservations`."""
        return self.running.stage[~self.running.opportunistic]

    def for_reservations(self) -> Running:
        """Return where regular tasks run, when they are expected to end, and what they take; measured, what counts."""
        chosen = ~self.running.opportunistic
        regular = self.running.of(chosen)
        demand = self._counted()[0][:, chosen] if self._measure else regular.promised
        return Running(regular.node, regular.began + regular.expected, demand.T, regular.expected)

    def counted(self) -> Floats:
        """Return what a tracker counts of each node [N, R]: what is used, and what young tasks are still allowed.

        It may be less than was promised, so over-estimates are given back (Tetris, 4.1), or more, so that tasks that
        take more than they were promised are known (4.3); never less than is used. Of memory it counts the most that a
        task has had: what it frees it may take again. Who is held counts with all that was promised.
        """
        return self.on_nodes(self.running, *self._counted())

    def use(self) -> Floats:
        """Return what the tasks really use of the whole cluster [R]."""
        return np.asarray(self.use_on.sum(axis=0))

    def start(self, starts: Starts, now: float, *, opportunistic: bool = False) -> Floats:
        """Run these tasks from now on; return what they take of all nodes [R, A]."""
        self._settle(now)
        new = _begun(starts, now, opportunistic=opportunistic)
        self.running = self.running.with_more(new)
        if not opportunistic:
            self.allocated += self.on_nodes(new, new.promised, new.promised_elsewhere)
        return self.on_all_nodes(new)

    def hold(self, tasks: Rows) -> None:
        """Let these tasks keep what they were promised, and use and do nothing but keep their memory, until `begin`."""
        self.running.held[np.isin(self.running.task, tasks)] = True

    def begin(self, stages: Rows, now: float) -> None:
        """Let those of these stages that are held do their work from now on."""
        self._settle(now)
        self.running.held[np.isin(self.running.stage, stages)] = False

    def end_due(self, now: float) -> Ends | None:
        """Take away the tasks that have ended by now."""
        self._settle(now)
        end = self.running.ends.max(axis=0, initial=-np.inf)
        over = end <= now + DONE_SECONDS
        if not over.any():
            return None
        tasks = self._without(over)
        held = self.on_all_nodes(tasks)
        peak = tasks.peak if self._measure else None
        return Ends(tasks.stage, tasks.task, np.minimum(end[over], now), held, tasks.opportunistic, peak)

    def take_away(self, places: Rows, now: float) -> Tasks:
        """End these running tasks before their time, and return them."""
        self._settle(now)
        chosen = np.zeros(self.count, dtype=np.bool_)
        chosen[places] = True
        return self._without(chosen)

    def promote(self, places: Rows) -> Tasks:
        """Make these running tasks regular, and return them."""
        self.running.opportunistic[places] = False
        promoted = self.running.of(places)
        self.allocated += self.on_nodes(promoted, promoted.promised, promoted.promised_elsewhere)
        return promoted

    def over_memory(self) -> Rows:
        """Return whom the kernel kills now: on nodes that use more memory than they have, until they do not."""
        tasks, memory = self.running, self.running.want[_MEMORY]
        over = self.demand[:, _MEMORY] - self.capacity[:, _MEMORY]
        victims = []
        for node in np.flatnonzero(over > 0).tolist():
            on_node = np.flatnonzero(tasks.node == node)
            request = np.where(tasks.opportunistic[on_node], 0.0, tasks.promised[_MEMORY, on_node])
            rank = tasks.first[on_node], tasks.began[on_node]
            victims.append(on_node[killed(float(over[node]), memory[on_node], request, *rank)])
        return np.concatenate(victims) if victims else _NO_ROWS

    def share(self, now: float) -> None:
        """Set the rate of every task from now on."""
        self._settle(now)
        # 1. The phase of each term, and what each task wants in it.
        tasks, profiles = self.running, self._profiles
        phase = profiles.phase(tasks.stage, tasks.progress)
        done = tasks.progress >= 1.0
        self._want(tasks, phase, done)
        # 2. What both classes want of each machine, and which part of it they get.
        rows = np.flatnonzero(~tasks.opportunistic), np.flatnonzero(tasks.opportunistic)
        classes = tasks.of(rows[0]), tasks.of(rows[1])
        wanted = [self.on_nodes(group, group.want, group.want_elsewhere) for group in classes]
        self.demand = wanted[0] + wanted[1]
        kept = self._kept() if self._cpu_weight else None
        of_class = parts(wanted[0], wanted[1], self.capacity, loss=self._loss, io_first=self._io_first, kept=kept)
        self.waits = 1.0 - of_class[0][:, CPU_INDEX]
        # 3. The rate of each term, and when its phase is over.
        for chosen, group, part in zip(rows, classes, of_class, strict=True):
            if len(chosen):
                tasks.rate[:, chosen] = np.where(group.held, 0.0, self._rates(group, part))
        left = np.maximum(1.0 - tasks.progress, 0.0) * tasks.seconds
        in_phase = np.maximum(profiles.until[tasks.stage, phase] - tasks.progress, 0.0) * tasks.seconds
        going = (tasks.rate > 0) & ~done
        ends = now + np.divide(left, tasks.rate, out=np.full(left.shape, np.inf), where=going)
        tasks.ends[:] = np.where(done, tasks.ends, ends)
        until = now + np.divide(in_phase, tasks.rate, out=np.full(left.shape, np.inf), where=going)
        self._next_at = float(until.min(initial=np.inf))
        # 4. What is really used of each machine.
        own, elsewhere = self.now_used()
        self.use_on = self.on_nodes(tasks, own, elsewhere)

    def now_used(self) -> tuple[Floats, Floats]:
        """Return what each task really uses of its own node [R, P], and reads from others [P]."""
        tasks = self.running
        speed = tasks.rate[_TERM]
        speed[_MEMORY] = 1.0
        return tasks.want * speed, tasks.want_elsewhere * tasks.rate[2]

    def on_nodes(self, tasks: Tasks, own: Floats, elsewhere: Floats) -> Floats:
        """Return what these tasks take of each node [N, R]: `own` [R, P] there, `elsewhere` [P] of their sources."""
        nodes = len(self.capacity)
        total = np.zeros((nodes, _R))
        for column, row in enumerate(own):
            total[:, column] = np.bincount(tasks.node, weights=row, minlength=nodes)
        add_copies(total, tasks.node, tasks.copies, own[_WRITE])
        if not elsewhere.any():
            return total
        # Shuffles read from many nodes, each task less what it reads on its own; the others from one.
        sent: Floats = np.bincount(tasks.source, weights=elsewhere, minlength=nodes + 1)[:nodes].astype(np.float64)
        shuffling = np.flatnonzero(tasks.rates_row >= 0)
        if len(shuffling):
            row, node = tasks.rates_row[shuffling], tasks.node[shuffling]
            away = np.maximum(tasks.elsewhere[shuffling], 1.0)
            weight = elsewhere[shuffling] / away
            sent = sent + np.bincount(row, weights=weight, minlength=len(self.rates)) @ self.rates
            sent -= np.bincount(node, weights=weight * self.rates[row, node], minlength=nodes)
        total[:, _READ] += sent
        total[:, _OUT] += sent
        return total

    def on_all_nodes(self, tasks: Tasks) -> Floats:
        """Return what tasks were promised, or would be as regular ones, of all nodes together [R, P]."""
        whole = tasks.promised.copy()
        whole[_READ] += tasks.promised_elsewhere
        whole[_OUT] += tasks.promised_elsewhere
        add_on_all_nodes(whole, tasks.copies, len(self.capacity), tasks.promised[_WRITE])
        return whole

    def _settle(self, now: float) -> None:
        """Let the tasks go on until now."""
        seconds = now - self._settled
        self._settled = now
        if seconds <= 0 or not self.count:
            return
        tasks = self.running
        own, elsewhere = self.now_used()
        tasks.used[:] += own * seconds
        if self._measure:
            self._note_peaks(own, elsewhere)
        tasks.progress[:] += tasks.rate * seconds / tasks.seconds
        done = tasks.ends <= now + DONE_SECONDS
        tasks.progress[:] = np.where(done, 1.0, np.minimum(tasks.progress, 1.0))

    def _counted(self) -> tuple[Floats, Floats]:
        """Return what each task counts of its own node [R, P], and of what it reads from others [P]."""
        tasks = self.running
        own, elsewhere = self.now_used()
        own[_MEMORY] = np.maximum(own[_MEMORY], tasks.peak[_MEMORY])
        age = np.where(tasks.held, 0.0, self._settled - tasks.began)
        own += ramp_up_allowance(tasks.promised, own, age)
        return own, elsewhere + ramp_up_allowance(tasks.promised_elsewhere, elsewhere, age)

    def _note_peaks(self, own: Floats, elsewhere: Floats) -> None:
        """Note what tasks use now, `own` [R, P] and `elsewhere` [P], where that is all they want: no machine is short.

        What a task uses while it is slowed down says less than what it needs; one that is held shows nothing.
        """
        tasks = self.running
        full = tasks.rate[_TERM] >= 1.0
        full[_MEMORY] = ~tasks.held
        seen = own.copy()
        seen[_READ] += elsewhere
        np.maximum(tasks.peak, seen, out=tasks.peak, where=full)

    def _without(self, chosen: Mask) -> Tasks:
        tasks = self.running.of(chosen)
        regular = tasks.of(~tasks.opportunistic)
        if len(regular.stage):
            self.allocated -= self.on_nodes(regular, regular.promised, regular.promised_elsewhere)
        self.running = self.running.of(~chosen)
        return tasks

    def _want(self, tasks: Tasks, phase: Rows, done: Mask) -> None:
        """Write down what each task wants now: each term by its phase, memory by that of the slowest."""
        profiles, scale = self._profiles, self._profiles.scale[tasks.task]
        of_term = phase[_TERM]
        of_term[_MEMORY] = phase.min(axis=0, initial=profiles.until.shape[1])
        part = profiles.parts[tasks.stage, of_term, np.arange(_R)[:, np.newaxis]] * scale
        over = done[_TERM] | tasks.held
        over[_MEMORY] = False
        tasks.want[:] = np.where(over, 0.0, tasks.demand * part)
        tasks.want_elsewhere[:] = np.where(done[2] | tasks.held, 0.0, tasks.elsewhere * part[_READ])

    def _kept(self) -> Floats:
        """Return what opportunistic tasks get at least [N, R]: a regular one weighs its cores, those without work 0."""
        tasks = self.running
        weight = np.where(tasks.opportunistic, self._cpu_weight, tasks.promised[CPU_INDEX] / _CORE)
        return kept_cpu(
            tasks.node, np.where(tasks.want[CPU_INDEX] > 0, weight, 0.0), tasks.opportunistic, self.capacity
        )

    def _rates(self, tasks: Tasks, part: Floats) -> Floats:
        """Return how fast each term goes [3, P]; a term that wants nothing goes at its peak."""
        padded = np.vstack((part, np.ones((1, _R))))
        shuffling = np.flatnonzero(tasks.rates_row >= 0)
        spread = None
        if len(shuffling):
            rows = tasks.rates_row[shuffling]
            spread = shuffling, spread_part(self.rates, rows, tasks.node[shuffling], part)
        rates = term_rates(padded, tasks.node, tasks.source, tasks.want, spread)
        np.minimum(rates[1], copying_rate(padded, tasks.node, tasks.copies), out=rates[1])
        wants = (TERM_COLUMNS @ tasks.want) > 0
        wants[2] |= tasks.want_elsewhere > 0
        return np.where(wants, rates, 1.0)

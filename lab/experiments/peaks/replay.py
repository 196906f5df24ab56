"""One run: regular jobs on full nodes, a predictor that is asked in every step, and pods that are packed on top.

In each step: 1. who has ended leaves, regular jobs start; 2. nodes whose last sample passes T_preempt lose the fewest
opportunistic pods that bring them under; 3. the predictor is asked for the regular pods' peak, and is judged by what
they will use; 4. it is asked for the peak of all pods, and opportunistic ones start in the room that it leaves; 5. what
all use in the step is counted.
"""

from collections import deque
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.policy.peak import History, PeakTuning, SigmaRule, auto_room, next_sigmas
from extender.policy.slack import over, smallest_set
from lab.experiments.peaks.placing import PlacedJobs, place
from lab.experiments.peaks.predictors import AUTO, PREDICTORS, Predictor, Question
from lab.experiments.peaks.trace import STEP_SECONDS, SurfJobs, surf_jobs
from lab.sim.parallel import Tell

HORIZONS = (6, 24, 72, 288)
"""Steps for which a prediction is to hold: half an hour, two hours, six, a day."""
MAIN = 1
"""The place of the horizon that rows are about."""

_T_PREEMPT = 0.99
_PERIOD = 12  # steps, an hour
_ROUNDING = 1e-6
_TUNING = PeakTuning()


@dataclass(frozen=True, slots=True)
class PeakSetup:
    """The nodes and how long they are looked at; how peaks are predicted, from how many samples, and N's budget.

    `budget`: evictions for each opportunistic pod and hour.
    """

    nodes: int
    cores: float
    steps: int
    traces: Path
    tuning: PeakTuning = _TUNING
    samples: int = 24
    budget: float = 0.01


@dataclass(frozen=True, slots=True)
class PeakRun:
    """One predictor, by its name, on one seed."""

    setup: PeakSetup
    predictor: str
    seed: int

    @property
    def name(self) -> str:
        """The name that is shown; different runs have different names."""
        setup = self.setup
        history = f"warm-up {setup.tuning.warm_up_seconds:g} s, samples {setup.samples}, budget {setup.budget:g}"
        return f"{self.predictor}, {history}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class PeakOutcome:
    """What came of a run, all in percent but `sigmas`.

    `violations` [H]: of node-intervals, those in which the regular pods passed their predicted peak within each
    horizon. `savings`: what the predictions are less than the requests. On top: `over_capacity`, of node-intervals,
    those in which all pods want more than there is; `evicted`, of opportunistic starts; `lost`, of opportunistic work;
    `gained`, opportunistic work that was not lost, of regular work; `used`, of capacity; `rate`, evictions of
    opportunistic pods in an hour. `sigmas`: the mean N of auto.
    """

    violations: tuple[float, ...]
    savings: float
    over_capacity: float
    evicted: float
    lost: float
    gained: float
    used: float
    rate: float
    sigmas: float


def perform(run: PeakRun, tell: Tell) -> PeakOutcome:
    """Return the outcome of a run. Raises TraceError."""
    setup = run.setup
    jobs = surf_jobs(setup.traces)
    placed = place(jobs, nodes=setup.nodes, cores=setup.cores, steps=setup.steps, seed=run.seed)
    replay = _Replay(run, jobs, placed)
    for step in range(setup.steps):
        replay.take(step)
        tell(step + 1, setup.steps)
    return replay.outcome()


@dataclass(frozen=True, slots=True)
class _Pods:
    """Pods that run: their rows of the jobs, nodes and starts; `top`: which are opportunistic. All [P]."""

    job: Rows
    node: Rows
    start: Counts
    top: Mask

    def only(self, which: Mask) -> "_Pods":
        return _Pods(self.job[which], self.node[which], self.start[which], self.top[which])

    def and_also(self, job: Rows, node: Rows, start: Counts, *, top: bool) -> "_Pods":
        return _Pods(
            np.concatenate((self.job, job)),
            np.concatenate((self.node, node)),
            np.concatenate((self.start, start)),
            np.concatenate((self.top, np.full(len(job), top))),
        )


class _Replay:
    """The state of a run, and what is counted."""

    def __init__(self, run: PeakRun, jobs: SurfJobs, placed: PlacedJobs) -> None:
        setup = run.setup
        self._setup, self._jobs, self._placed = setup, jobs, placed
        self._predict: Predictor = PREDICTORS[run.predictor]
        self._rng = np.random.default_rng((run.seed, 1))
        self._waiting: deque[int] = deque()
        self._capacity = np.full((setup.nodes, 1), setup.cores)
        empty = np.empty(0, dtype=np.intp)
        self._pods = _Pods(empty, empty, empty.astype(np.int64), empty.astype(np.bool_))
        self._rule = SigmaRule(budget=setup.budget)
        self._leads = run.predictor == AUTO
        self._sigmas: list[float] = [self._rule.start]
        self._period_evicted, self._period_hours = 0, 0.0
        self._asked, self._violated = 0, np.zeros(len(HORIZONS))
        self._predicted, self._requested = 0.0, 0.0
        self._started, self._evicted, self._pod_hours = 0, 0, 0.0
        self._over = 0
        self._regular_work, self._top_work, self._lost_work, self._done = 0.0, 0.0, 0.0, 0.0

    def take(self, step: int) -> None:
        """Let one step go by."""
        # 1. Who has ended leaves; regular jobs start.
        self._pods = self._pods.only(step - self._pods.start < self._jobs.length[self._pods.job])
        new = self._placed.start == step
        self._pods = self._pods.and_also(
            self._placed.job[new], self._placed.node[new], self._placed.start[new], top=False
        )
        # 2. Nodes over T_preempt lose opportunistic pods; N follows.
        self._evict(step)
        self._lead(step)
        # 3. The predictor is judged on regular pods alone.
        self._judge(step)
        # 4. Opportunistic pods start in the room that it leaves.
        self._pack(step)
        # 5. What all use is counted.
        self._count(step)

    def outcome(self) -> PeakOutcome:
        """Return what was counted."""
        intervals = self._setup.steps * self._setup.nodes
        return PeakOutcome(
            violations=tuple((100 * self._violated / max(self._asked, 1)).tolist()),
            savings=100 * (1 - self._predicted / max(self._requested, 1.0)),
            over_capacity=100 * self._over / intervals,
            evicted=100 * self._evicted / max(self._started, 1),
            lost=100 * self._lost_work / max(self._top_work, 1.0),
            gained=100 * (self._top_work - self._lost_work) / max(self._regular_work, 1.0),
            used=100 * self._done / (intervals * self._setup.cores),
            rate=100 * self._evicted / max(self._pod_hours, 1.0),
            sigmas=float(np.mean(self._sigmas)),
        )

    def _evict(self, step: int) -> None:
        """Evict, by the last sample of who is still there."""
        last = self._samples(self._pods, step, 1)[:, 0]
        use = np.where(np.isnan(last), 0.0, last)[:, np.newaxis]
        measured = self._by_node(self._pods, use[:, 0])
        too_much = over(measured, self._capacity, np.array(_T_PREEMPT))
        gone = np.zeros(len(self._pods.job), dtype=np.bool_)
        for node in too_much[:, 0].nonzero()[0]:
            here = (self._pods.node == node).nonzero()[0]
            work = self._jobs.cores[self._pods.job[here]] * (step - self._pods.start[here])
            leaving = smallest_set(too_much[node], use[here], work, self._pods.top[here])
            gone[here[self._pods.top[here]] if leaving is None else here[leaving]] = True
        for pod in gone.nonzero()[0]:
            job = int(self._pods.job[pod])
            self._lost_work += float(self._jobs.use[job, : step - self._pods.start[pod]].sum())
            self._waiting.append(job)
        self._evicted += int(gone.sum())
        self._period_evicted += int(gone.sum())
        self._pods = self._pods.only(~gone)

    def _lead(self, step: int) -> None:
        """Lead N, once in a period."""
        if step % _PERIOD or not step or not self._leads:
            return
        rate = np.array(self._period_evicted / max(self._period_hours, 1.0))
        self._sigmas.append(float(next_sigmas(np.array(self._sigmas[-1]), rate, self._rule)))
        self._period_evicted, self._period_hours = 0, 0.0

    def _judge(self, step: int) -> None:
        regular = self._pods.only(~self._pods.top)
        futures = self._futures(regular, step)
        question = self._question(regular, step, futures[MAIN])
        predicted = self._predict(question)
        busy = question.requests > 0
        self._asked += int(busy.sum())
        for row, future in enumerate(futures):
            self._violated[row] += int((future > predicted + _ROUNDING)[busy].sum())
        self._predicted += float(predicted[busy].sum())
        self._requested += float(question.requests.sum())

    def _pack(self, step: int) -> None:
        question = self._question(self._pods, step, self._futures(self._pods, step, only=MAIN)[0])
        room = auto_room(self._capacity, self._predict(question))[:, 0]
        jobs, nodes = [], []
        while True:
            if not self._waiting:
                self._waiting.extend(self._rng.permutation(len(self._jobs.length)).tolist())
            node, cores = int(room.argmax()), self._jobs.cores[self._waiting[0]]
            if room[node] < cores:
                break
            room[node] -= cores
            jobs.append(self._waiting.popleft())
            nodes.append(node)
        self._started += len(jobs)
        starts = np.full(len(jobs), step, dtype=np.int64)
        self._pods = self._pods.and_also(
            np.array(jobs, dtype=np.intp), np.array(nodes, dtype=np.intp), starts, top=True
        )

    def _count(self, step: int) -> None:
        use = self._jobs.use[self._pods.job, step - self._pods.start]
        wanted = self._by_node(self._pods, use)
        self._over += int((wanted > self._capacity + _ROUNDING).sum())
        self._done += float(np.minimum(wanted, self._capacity).sum())
        self._regular_work += float(use[~self._pods.top].sum())
        self._top_work += float(use[self._pods.top].sum())
        hours = float(self._pods.top.sum()) * STEP_SECONDS / 3600
        self._pod_hours += hours
        self._period_hours += hours

    def _question(self, pods: _Pods, step: int, future: Floats) -> Question:
        samples = self._samples(pods, step, self._setup.samples)
        cores = self._jobs.cores[pods.job]
        unmeasured = np.isnan(samples[:, -1])
        present = self._by_node(pods, np.where(unmeasured, 0.0, samples[:, -1]))
        demand = cores[:, np.newaxis]
        return Question(
            history=History(samples[:, :, np.newaxis], pods.node, demand, demand, present),
            requests=self._by_node(pods, cores),
            unmeasured=self._by_node(pods, np.where(unmeasured, cores, 0.0)),
            capacity=self._capacity,
            future=future,
            sigmas=self._sigmas[-1],
            tuning=self._setup.tuning,
        )

    def _samples(self, pods: _Pods, step: int, count: int) -> Floats:
        """Return what was measured of these pods before this step [P, count], NaN where they had not started."""
        places = (step - pods.start)[:, np.newaxis] + np.arange(-count, 0)
        samples = self._jobs.use[pods.job[:, np.newaxis], np.maximum(places, 0)]
        return np.where(places < 0, np.nan, samples)

    def _futures(self, pods: _Pods, step: int, only: int | None = None) -> list[Floats]:
        """Return the peak of these pods' total on each node [N, 1] within each horizon, or `only` within this one."""
        horizons = HORIZONS if only is None else (HORIZONS[only],)
        places = (step - pods.start)[:, np.newaxis] + np.arange(max(horizons))
        longest = self._jobs.use.shape[1]
        to_come = self._jobs.use[pods.job[:, np.newaxis], np.minimum(places, longest - 1)]
        total = self._by_node(pods, np.where(places < longest, to_come, 0.0))
        return [total[:, :horizon].max(axis=1, keepdims=True) for horizon in horizons]

    def _by_node(self, pods: _Pods, amounts: Floats) -> Floats:
        """Return the sums of pods' amounts [P] or [P, K] on each node [N, 1] or [N, K]."""
        table = amounts[:, np.newaxis] if amounts.ndim == 1 else amounts
        sums = np.zeros((self._setup.nodes, table.shape[1]))
        np.add.at(sums, pods.node, table)
        return sums

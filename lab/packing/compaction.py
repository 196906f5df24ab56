"""How few machines would hold the workload: cluster compaction (paper, III.D and algorithm 3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Rows
from lab.packing.bound import fewest_machines
from lab.packing.model import Problem
from lab.packing.orders import order_of
from lab.packing.placing import pack
from lab.packing.rules import FIRST_FIT
from lab.sim.parallel import Show, Tell, run_all, unless_failed

TAU, TRIALS = 0.006, 11
"""The part of the tasks that may stay pending, and how many permutations are tried (paper, III.D)."""

MOST_TIMES = 16
"""A cluster is grown to so many times its size at most."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The order in which classes are placed, and the rule that chooses the machine."""

    order: str = "arrival"
    rule: str = FIRST_FIT


@dataclass(frozen=True, slots=True)
class CompactionLimits:
    """`tau`: the part of the tasks that may stay pending; `mu`: how many machines the search may be off."""

    tau: float = TAU
    mu: int = 1
    trials: int = TRIALS
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Compaction:
    """How many machines were enough in each trial [T], and how many any placement needs on the same permutation [T].

    The cluster was grown to `times` its size before. Of the sizes `looked` at next to those found so many `disagree`:
    a larger one is too small, or a smaller one is enough.
    """

    sizes: Counts
    bounds: Counts
    times: int
    disagree: int
    looked: int

    @property
    def percentile(self) -> int:
        """The 90th percentile of the trials."""
        return _ninety(self.sizes)

    @property
    def bound(self) -> int:
        """The 90th percentile of what any placement needs."""
        return _ninety(self.bounds)


def compact(
    problem: Problem,
    policy: Policy,
    terms: CompactionLimits,
    advance: Callable[[], None] = lambda: None,
    *,
    processes: int = 1,
) -> Compaction | None:
    """Return the compacted sizes; None where even `MOST_TIMES` the machines are too few. Calls `advance` per trial.

    The number of processes changes nothing of the result. Raises DovetailError where one of them is killed.
    """
    pending = int(terms.tau * problem.classes.tasks)
    order = order_of(problem, policy.order)
    # 1. Grow the cluster by clones of itself until it holds the workload.
    times = 1
    while not _Search(problem, policy, order, pending, np.arange(problem.machines), terms.seed).holds(problem.machines):
        if times * 2 > MOST_TIMES:
            return None
        times, problem = times * 2, problem.grown(2)
    # 2. Search the prefix of each permutation, in chains of trials.
    chains = [range(first, terms.trials, _CHAINS) for first in range(min(_CHAINS, terms.trials))]
    tasks = {f"trials from {chain[0]}": _Chain(problem, policy, terms, order, pending, chain) for chain in chains}
    show = _advancing(advance, {name: len(task.trials) for name, task in tasks.items()})
    chains_run = unless_failed(run_all(_search, tasks, processes=processes, show=show))
    trials = sorted((trial for chain in chains_run.values() for trial in chain), key=lambda trial: trial.trial)
    return Compaction(
        sizes=np.array([trial.size for trial in trials]),
        bounds=np.array([trial.bound for trial in trials]),
        times=times,
        disagree=sum(trial.disagree for trial in trials),
        looked=sum(trial.looked for trial in trials),
    )


_CHAINS = 2
"""Trials are searched in so many chains. All but a chain's first begin as far above their bound as the last ended."""


@dataclass(frozen=True, slots=True)
class _Chain:
    """What a chain of trials needs."""

    problem: Problem
    policy: Policy
    terms: CompactionLimits
    order: Rows
    pending: int
    trials: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Trial:
    """What a trial found."""

    trial: int
    size: int
    bound: int
    disagree: int
    looked: int


def _search(chain: _Chain, tell: Tell) -> list[_Trial]:
    problem, terms, trials = chain.problem, chain.terms, list[_Trial]()
    for trial in chain.trials:
        permutation = np.random.default_rng([terms.seed, trial]).permutation(problem.machines)
        search = _Search(problem, chain.policy, chain.order, chain.pending, permutation, trial)
        size = search.smallest(terms.mu, trials[-1].size - trials[-1].bound if trials else None)
        # Look beside it: packing is not monotone.
        others = [other for other in (size + 1, size - 1 - terms.mu) if search.bound <= other <= problem.machines]
        disagree = sum(search.holds(other) != (other > size) for other in others)
        trials.append(_Trial(trial, size, search.bound, disagree, len(others)))
        tell(len(trials), len(chain.trials))
    return trials


def _advancing(advance: Callable[[], None], totals: Mapping[str, int]) -> Show:
    """Return what calls `advance` once for each trial, though not every trial is told."""
    ended = dict.fromkeys(totals, 0)

    def show(name: str, done: int, total: int) -> None:
        now = totals[name] if done == total else done
        for _ in range(now - ended[name]):
            advance()
        ended[name] = now

    return show


class _Search:
    """The prefixes of one permutation."""

    def __init__(self, problem: Problem, policy: Policy, order: Rows, pending: int, machines: Rows, seed: int) -> None:
        self._problem, self._rule, self._order, self._pending = problem, policy.rule, order, pending
        self._machines, self._seed = machines, seed
        self.bound = fewest_machines(problem, machines, pending)
        self._on_prefix = self._all_prefixes() if policy.rule == FIRST_FIT and _is_local(problem) else None
        self._known: dict[int, int] = {}

    def _all_prefixes(self) -> Counts:
        """Return how many tasks first fit places on each prefix [M' + 1]: one placement on all machines says it.

        A machine gets what no machine before it has room for, so what comes behind it changes nothing there.
        """
        packing = pack(self._problem, self._machines, self._order, self._rule)
        placed = np.zeros(self._problem.machines, dtype=np.int64)
        for part in packing.placed:
            placed[part.machines] += part.count
        return np.concatenate(([0], np.cumsum(placed[self._machines])))

    def holds(self, size: int) -> bool:
        """Say whether so many machines hold the workload; fewer than the bound need not be tried."""
        return size >= self.bound and self._pending_on(size) <= self._pending

    def _pending_on(self, size: int) -> int:
        """Return how many tasks find no place on so many machines; if far too many, how many of the first."""
        if self._on_prefix is not None:
            return int(self._problem.classes.tasks - self._on_prefix[size])
        if size not in self._known:
            draw, machines = np.random.default_rng([self._seed, size]), self._machines[:size]
            enough = _FAR * (self._pending + 1)
            packing = pack(self._problem, machines, self._order, self._rule, draw=draw, give_up_above=enough)
            self._known[size] = packing.pending
        return self._known[size]

    def smallest(self, mu: int, above: int | None = None) -> int:
        """Return the end of the paper's binary search: a size that holds it, where one less by `mu` did not.

        It begins so far `above` the bound, if that is said. Where the next size lies is guessed by how many tasks were
        pending: a machine more takes about as many as one does in the mean. Each guess on the same side goes twice as
        far; one beyond what is known already halves that.
        """
        # `least` does not hold it, and `most` does, as far as anybody knows.
        least, most = self.bound - 1, len(self._machines)
        size, far = self.bound + (above or 0), 1
        side: bool | None = None
        while most - least > mu:
            if not least < size < most:
                size = (least + most) // 2
            holds = self.holds(size)
            least, most = (least, size) if holds else (size, most)
            far = 2 * far if holds is side else 1
            side = holds
            size += self._step(size, mu) * far
        if most == len(self._machines) and not self.holds(most):  # another order of the machines held it
            return most + 1
        return most

    def _step(self, size: int, mu: int) -> int:
        """Return how far the next size is guessed to be, `mu` at least: below 0 where this one holds it."""
        over = self._pending_on(size) - self._pending
        machines = abs(over) * size // max(self._problem.classes.tasks, 1)
        return max(machines, mu) * (1 if over > 0 else -1)


_FAR = 4
"""Where so many times as many tasks are pending as may be, the rest of them is not counted."""


def _is_local(problem: Problem) -> bool:
    """Say whether what is on one machine never decides what another may take."""
    return problem.relations is None or problem.relations.local


def _ninety(counts: Counts) -> int:
    return int(np.percentile(counts, 90, method="higher"))

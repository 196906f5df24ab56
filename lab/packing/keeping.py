"""Which tasks are where, as far as others look at it, and where by that a task of a class may go next.

As kube-scheduler has it for one pod: InterPodAffinity (a pod keeps away from its matches, and from those who keep away
from it; it goes near a match, or anywhere if there is none but itself), PodTopologySpread and NodePorts. What holds for
all tasks of a class until some have been placed is said at once, as an `Allowance`.
"""

from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Counts, Mask, Rows
from lab.packing.evenly import Cap
from lab.packing.relations import Even, Relations, Term, Ties

_NO_LIMIT = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Allowance:
    """Where tasks of a class may go now: which machines are `allowed` [M'], and how many each takes at `most` [M'].

    That holds for `limit` tasks. `caps` are bounds of domains of several machines. `luck` [M'] orders equal machines;
    without it they are drawn.
    """

    allowed: Mask
    most: Counts
    limit: int = _NO_LIMIT
    caps: tuple[Cap, ...] = ()
    luck: Rows | None = None

    @property
    def for_one(self) -> Mask:
        """Where one task may go [M']."""
        there = self.allowed & (self.most > 0)
        for cap in self.caps:
            bounded = cap.domain >= 0
            there[bounded] &= cap.has_room[cap.domain[bounded]]
        return there


class Keeping:
    """The tasks on machines [M'] of a problem, in this order; at first those that leave with them."""

    def __init__(self, relations: Relations, machines: Rows) -> None:
        self._relations, self._machines = relations, machines
        self._domains, self._eligible = relations.domains[:, machines], relations.eligible[:, machines]
        self._matched: dict[tuple[int, int], Counts] = {}
        self._held: dict[tuple[Term, int], Counts] = {}

    def take(self, rows: Rows, taken: Counts, ties: Ties, copy: int) -> None:
        """Note that these machines [K] hold so many tasks more [K]."""
        for matcher in ties.matched:
            self._matched[self._of(matcher, copy)] = _added(self._matches(matcher, copy), rows, taken, self._size)
        for term in ties.away:
            place = term, self._of(term[0], copy)[1]
            self._held[place] = _added(self._holders(term, copy), rows, taken, self._size)

    def allowance(self, ties: Ties, copy: int, able: Mask | None) -> Allowance:
        """Return where tasks may go; `able` [M'] are the machines that have room."""
        allowing = _Allowing(np.ones(self._size, dtype=np.bool_), np.full(self._size, _NO_LIMIT))
        # 1. They keep away from others, and others from them.
        for matcher, key in ties.away:
            self._keep_away(key, self._matches(matcher, copy), allowing)
            if matcher in ties.matched:
                self._keep_apart(key, allowing)
        for matcher in ties.matched:
            for term in self._relations.shunned.get(matcher, ()):
                self._keep_away(term[1], self._holders(term, copy), allowing)
        # 2. They go near others.
        if ties.near is not None:
            self._go_near(*ties.near, ties, copy, allowing)
        # 3. They spread.
        for even in ties.spread:
            self._spread(even, ties, copy, able, allowing)
        return Allowance(allowing.allowed, allowing.most, allowing.limit, tuple(allowing.caps))

    @property
    def _size(self) -> int:
        return len(self._machines)

    def _of(self, matcher: int, copy: int) -> tuple[int, int]:
        return matcher, 0 if matcher in self._relations.ports else copy

    def _matches(self, matcher: int, copy: int) -> Counts | None:
        """Return how many matches are on each machine [M'], None for none anywhere."""
        known = self._matched.get(self._of(matcher, copy))
        if known is None and matcher in self._relations.matched:
            known = self._matched[self._of(matcher, copy)] = self._relations.matched[matcher][self._machines]
        return known

    def _holders(self, term: Term, copy: int) -> Counts | None:
        """Return how many on each machine [M'] keep away from matches of the term, None for none anywhere."""
        place = term, self._of(term[0], copy)[1]
        if place not in self._held and term in self._relations.held:
            self._held[place] = self._relations.held[term][self._machines]
        return self._held.get(place)

    def _in_domain(self, key: int, counts: Counts, among: Mask | None = None) -> Counts:
        """Return how many are in each domain [D]; `among`: only on these machines."""
        domain = self._domains[key]
        there = domain >= 0 if among is None else among & (domain >= 0)
        sums = np.bincount(domain[there], weights=counts[there], minlength=int(domain.max(initial=-1)) + 1)
        return sums.astype(np.int64)

    def _keep_away(self, key: int, counts: Counts | None, allowing: "_Allowing") -> None:
        if counts is None:
            return
        domain = self._domains[key]
        if self._relations.single[key]:
            allowing.allowed &= (domain < 0) | (counts == 0)
        elif len(sums := self._in_domain(key, counts)):
            allowing.allowed &= (domain < 0) | (sums[domain] == 0)

    def _keep_apart(self, key: int, allowing: "_Allowing") -> None:
        domain = self._domains[key]
        allowing.most[domain >= 0] = 1
        if not self._relations.single[key]:
            domains = int(domain.max(initial=-1)) + 1
            nobody = np.zeros(domains, dtype=np.int64)
            allowing.caps.append(Cap(domain, nobody, np.ones(domains, dtype=np.bool_), 1, even=False))

    def _go_near(self, matcher: int, keys: tuple[int, ...], ties: Ties, copy: int, allowing: "_Allowing") -> None:
        counts = self._matches(matcher, copy)
        with_keys = (self._domains[list(keys)] >= 0).all(axis=0)
        anywhere = (self._domains[list(keys)] >= 0).any(axis=0)
        allowing.allowed &= with_keys
        if counts is None or not counts[anywhere].any():
            allowing.allowed &= matcher in ties.matched
            allowing.limit = 1
            return
        for key in keys:
            sums = self._in_domain(key, counts)
            if len(sums):
                allowing.allowed &= sums[self._domains[key]] > 0

    def _spread(self, even: Even, ties: Ties, copy: int, able: Mask | None, allowing: "_Allowing") -> None:
        domain, eligible = self._domains[even.key], self._eligible[even.eligible]
        counts = self._matches(even.matcher, copy)
        nobody = np.zeros(self._size, dtype=np.int64)
        held = self._in_domain(even.key, nobody if counts is None else counts, eligible)
        present = np.zeros(len(held), dtype=np.bool_)
        present[domain[eligible]] = True
        rises = int(present.sum()) >= even.domains
        lowest = int(held[present].min(initial=_NO_LIMIT)) if rises and present.any() else 0
        there, left = domain >= 0, lowest + even.most - held
        allowing.allowed &= there
        if even.matcher not in ties.matched:
            allowing.allowed[there] &= left[domain[there]] >= 0
            return
        if not self._relations.single[even.key]:
            allowing.caps.append(Cap(domain, held, present, even.most, even=rises))
            return
        allowing.most[there] = np.minimum(allowing.most[there], np.maximum(left[domain[there]], 0))
        lowly = eligible & there
        lowly[lowly] = held[domain[lowly]] == lowest
        if rises and able is not None and (able & allowing.allowed)[lowly].all():  # else the least stays what it is
            allowing.limit = min(allowing.limit, int(lowly.sum()))


@dataclass(slots=True)
class _Allowing:
    """An allowance while it is worked out."""

    allowed: Mask
    most: Counts
    limit: int = _NO_LIMIT
    caps: list[Cap] = field(default_factory=list)


def _added(counts: Counts | None, rows: Rows, taken: Counts, size: int) -> Counts:
    """Return the counts with so many more; for None, of nothing."""
    there = np.zeros(size, dtype=np.int64) if counts is None else counts
    there[rows] += taken
    return there

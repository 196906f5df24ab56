"""What tasks have to do with one another, by what kube-scheduler looks at: who is a match of whom, and in which domain.

Every constraint between tasks is put in the same terms. A *matcher* is a set of tasks: those that a selector selects,
or that take a port of a node. A *key* says which machines are one domain: those of one zone, say, or each by itself.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from extender.arrays import Counts, Mask, Rows
from extender.cluster.eligibility import Constraints, Toleration
from extender.cluster.model import Node
from extender.cluster.peers import ALONE, HostPort, Peers, PodTerm, Selector, TopologySpread
from lab.packing.task import PackingTask

_HOSTNAME, _MACHINE = "kubernetes.io/hostname", ""
_EVERY_TAINT = (Toleration(operator="Exists"),)
_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104  # it is compared, nobody listens
_ANY = "any"

Term = tuple[int, int]
"""A matcher, and the key by which its tasks are looked for."""


@dataclass(frozen=True, slots=True)
class Even:
    """A spread over domains: of a `matcher`'s tasks a domain of `key` has at most `most` more than any other.

    Only machines of the row `eligible` count. Where they are in fewer than `domains`, the least is 0.
    """

    matcher: int
    key: int
    most: int
    domains: int
    eligible: int


@dataclass(frozen=True, slots=True)
class Ties:
    """What a class has to do with others. `matched`: the matchers that it is a match of.

    A task goes where no match is of `away`, and where one is of the matcher `near` by each of its keys. Those of other
    `copy` are of no concern to it, but for ports.
    """

    matched: tuple[int, ...] = ()
    away: tuple[Term, ...] = ()
    near: tuple[int, tuple[int, ...]] | None = None
    spread: tuple[Even, ...] = ()
    copy: int = 0

    @property
    def waits(self) -> bool:
        """Whether it may find a place later where it finds none now."""
        return self.near is not None or bool(self.spread)


UNTIED = Ties()


@dataclass(frozen=True, slots=True)
class Relations:
    """Domains, and what of this is on machines from the beginning.

    `domains` [K, M] is each machine's domain by each key, -1 for none; by a key that is `single` [K] each machine is
    one. `eligible` [E, M]. `ports` are the matchers of ports. `matched` and `held` [M] say how many tasks that leave
    with machines are matches, and keep away. `shunned` are by matcher all terms that anybody keeps away by. They are
    `local` where what is on a machine counts on that machine alone.
    """

    domains: Rows
    single: tuple[bool, ...]
    eligible: Mask
    ports: frozenset[int] = frozenset()
    matched: Mapping[int, Counts] = field(default_factory=dict)
    held: Mapping[Term, Counts] = field(default_factory=dict)
    shunned: Mapping[int, tuple[Term, ...]] = field(default_factory=dict)
    local: bool = True

    def grown(self, times: int) -> "Relations":
        """Return the same beside so many less one clones of all machines; a clone is in its original's zone."""
        machines = self.domains.shape[1]
        domains = np.tile(self.domains, (1, times))
        own = np.array(self.single)[:, np.newaxis] & (domains >= 0)
        return replace(
            self,
            domains=np.where(own, np.arange(machines * times), domains),
            eligible=np.tile(self.eligible, (1, times)),
            matched={matcher: np.tile(counts, times) for matcher, counts in self.matched.items()},
            held={term: np.tile(counts, times) for term, counts in self.held.items()},
        )

    def told_apart_by(self) -> Rows:
        """Return what tells machines apart that are empty and offer the same [M, X]."""
        single = np.array(self.single)
        columns = [
            *self.domains[~single],
            *(self.domains[single] >= 0),
            *self.eligible,
            *self.matched.values(),
            *self.held.values(),
        ]
        return np.array(columns, dtype=np.intp).reshape(len(columns), self.domains.shape[1]).T


def relate(
    tasks: Sequence[PackingTask],
    leaving: Sequence[PackingTask],
    machines: Sequence[Node],
    allowing: Callable[[Constraints], Mask],
) -> tuple[Relations | None, Sequence[Ties]]:
    """Return what these tasks, and those that are `leaving` with their machines, have to do with one another.

    None, and nothing for each task, where no task has anything to do with another.
    """
    if all(task.peers is ALONE or task.peers == ALONE for task in (*tasks, *leaving)):
        return None, [UNTIED] * len(tasks)
    relating = _Relating(machines, allowing)
    for task in (*tasks, *leaving):
        relating.note(task.peers)
    ties = [relating.ties(task) for task in tasks]
    there = [(relating.ties(task), task.node) for task in leaving]
    return relating.relations(ties, there), ties


_Selected = tuple[tuple[tuple[str, ...], Selector | None], ...]
"""Namespaces and selectors, all of which a match meets."""

_Taken = tuple[str, int, str]
"""A protocol, a port, and an address or `_ANY`."""


class _Relating:
    """Gives matchers, keys and masks their rows."""

    def __init__(self, machines: Sequence[Node], allowing: Callable[[Constraints], Mask]) -> None:
        self._machines, self._allowing = machines, allowing
        self._selected: dict[_Selected, int] = {}
        self._likely: dict[tuple[str, str] | None, list[tuple[_Selected, int]]] = {}
        self._taken: dict[_Taken, int] = {}
        self._keys: dict[str, int] = {}
        self._domains: list[Rows] = []
        self._eligible: dict[bytes, int] = {}
        self._masks: list[Mask] = []
        self._matches: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[int, ...]] = {}
        self._known: dict[tuple[object, ...], Ties] = {}

    def note(self, peers: Peers) -> None:
        """Give what these ask for its rows, before it is known who is a match."""
        for term in (*peers.away, *(one.term for one in peers.spread)):
            self._matcher((term,))
        if peers.near:
            self._matcher(peers.near)

    def ties(self, task: PackingTask) -> Ties:
        """Return what a task has to do with others."""
        constraints = task.constraints if task.peers.spread else None
        key = (task.namespace, task.labels, task.peers, constraints)
        if key not in self._known:
            self._known[key] = self._tied(task)
        return self._known[key]

    def _tied(self, task: PackingTask) -> Ties:
        peers = task.peers
        matched = (*self._matched_by(task.namespace, task.labels), *self._ports_of(peers.ports))
        away = [(self._matcher((term,)), self._key(term.key)) for term in peers.away]
        away += [(matcher, self._key(_MACHINE)) for port in peers.ports for matcher in self._conflicts(port)]
        near = (self._matcher(peers.near), tuple(self._key(term.key) for term in peers.near)) if peers.near else None
        keys = [self._key(one.term.key) for one in peers.spread]
        spread = tuple(self._even(one, keys, task.constraints) for one in peers.spread)
        return Ties(matched, tuple(dict.fromkeys(away)), near, spread)

    def relations(self, ties: Sequence[Ties], there: Sequence[tuple[Ties, str | None]]) -> Relations:
        """Return all that was noted."""
        machines, every = len(self._machines), {*ties, *(tied for tied, _ in there)}
        rows = {node.name: row for row, node in enumerate(self._machines)}
        matched, held = dict[int, Counts](), dict[Term, Counts]()
        for tied, node in there:
            if node is not None and node in rows:
                for matcher in tied.matched:
                    matched.setdefault(matcher, np.zeros(machines, dtype=np.int64))[rows[node]] += 1
                for term in tied.away:
                    held.setdefault(term, np.zeros(machines, dtype=np.int64))[rows[node]] += 1
        shunned: dict[int, list[Term]] = {}
        for term in sorted({term for tied in every for term in tied.away}):
            shunned.setdefault(term[0], []).append(term)
        single = tuple(key in (_MACHINE, _HOSTNAME) for key in self._keys)
        return Relations(
            domains=np.array(self._domains, dtype=np.intp).reshape(len(self._domains), machines),
            single=single,
            eligible=np.array(self._masks, dtype=np.bool_).reshape(len(self._masks), machines),
            ports=frozenset(self._taken.values()),
            matched=matched,
            held=held,
            shunned={matcher: tuple(terms) for matcher, terms in shunned.items()},
            local=all(single) and not any(tied.waits for tied in every),
        )

    def _matcher(self, terms: Sequence[PodTerm]) -> int:
        selected = tuple((term.namespaces, term.selector) for term in terms)
        if selected not in self._selected:
            self._selected[selected] = len(self._selected) + len(self._taken)
            self._likely.setdefault(_label_of(selected), []).append((selected, self._selected[selected]))
        return self._selected[selected]

    def _taker(self, taken: _Taken) -> int:
        return self._taken.setdefault(taken, len(self._selected) + len(self._taken))

    def _matched_by(self, namespace: str, labels: tuple[tuple[str, str], ...]) -> tuple[int, ...]:
        known = self._matches.get((namespace, labels))
        if known is None:
            by_name = dict(labels)
            likely = (self._likely.get(label, ()) for label in (None, *labels))
            known = tuple(
                sorted(
                    matcher
                    for selected, matcher in itertools.chain.from_iterable(likely)
                    if all(PodTerm("", names, selector).selects(namespace, by_name) for names, selector in selected)
                )
            )
            self._matches[namespace, labels] = known
        return known

    def _ports_of(self, ports: Sequence[HostPort]) -> tuple[int, ...]:
        """Return what tasks with these ports are matches of: those who take it at all, and at this address."""
        taken = [(one.protocol, one.port, address) for one in ports for address in (_ANY, _address(one))]
        return tuple(dict.fromkeys(map(self._taker, taken)))

    def _conflicts(self, port: HostPort) -> tuple[int, ...]:
        """Return whom a task with this port keeps away from; one at every address from all who have the port."""
        address = _address(port)
        at = (_ANY,) if address == _EVERY_ADDRESS else (address, _EVERY_ADDRESS)
        return tuple(self._taker((port.protocol, port.port, one)) for one in at)

    def _key(self, key: str) -> int:
        if key not in self._keys:
            self._keys[key] = len(self._keys)
            self._domains.append(self._domains_by(key))
        return self._keys[key]

    def _domains_by(self, key: str) -> Rows:
        values: dict[str, int] = {}
        domains = []
        for row, node in enumerate(self._machines):
            value = node.name if key == _MACHINE else node.labels.get(key)
            own = row if key in (_MACHINE, _HOSTNAME) else values.setdefault(value or "", len(values))
            domains.append(-1 if value is None else own)
        return np.array(domains, dtype=np.intp)

    def _even(self, spread: TopologySpread, keys: Sequence[int], constraints: Constraints) -> Even:
        """Return a spread constraint of a task that has others by these keys: nodes that lack one do not count."""
        eligible = np.logical_and.reduce([self._domains[key] >= 0 for key in keys])
        if spread.by_affinity:
            eligible &= self._allowing(replace(constraints, volumes=(), tolerations=_EVERY_TAINT))
        if spread.by_taints:
            eligible &= self._allowing(Constraints(tolerations=constraints.tolerations))
        row = self._eligible.setdefault(eligible.tobytes(), len(self._eligible))
        if row == len(self._masks):
            self._masks.append(eligible)
        key = self._key(spread.term.key)
        return Even(self._matcher((spread.term,)), key, spread.most, spread.domains, row)


def _label_of(selected: _Selected) -> tuple[str, str] | None:
    """Return a label that all who are selected have; None where there is none such."""
    needed = (one for _, selector in selected for one in selector or ())
    return next(((one.key, one.values[0]) for one in needed if one.operator == "In" and len(one.values) == 1), None)


def _address(port: HostPort) -> str:
    return port.address or _EVERY_ADDRESS

"""Tasks that have to do with others go where kube-scheduler would let them, one after the other."""

from functools import cache

import numpy as np
import pytest

from extender.cluster.eligibility import Constraints, Requirement, Taint
from extender.cluster.peers import HostPort, Peers, PodTerm, TopologySpread
from lab.packing.bound import fewest_machines
from lab.packing.compaction import CompactionLimits, Policy, compact
from lab.packing.inflation import horizontal
from lab.packing.model import problem_of
from lab.packing.orders import order_of
from lab.packing.placing import pack
from lab.packing.rules import RULES as EVERY_RULE
from tests.lab.packing.small import GIB, everywhere, node, task
from tests.lab.packing.test_placing import ranking, tasks_on

RULES = list(EVERY_RULE)
HOST, ZONE = "kubernetes.io/hostname", "zone"


def of(app, key=HOST, namespace="n"):
    return PodTerm(key, (namespace,), (Requirement("app", "In", (app,)),))


def pod(app, peers=None, cpu=1000, **others):
    more = {"labels": (("app", app),), "namespace": "n", "job": app, **others}
    return task(cpu, 1, peers=peers or Peers(), **more)


def machine(name, zone="a", cpu=4000, **others):
    labels = {HOST: name, **({ZONE: zone} if zone else {})}
    return node(name, cpu=cpu, gib=16, labels=labels, **others)


class World:
    """Tasks on nodes, and what kube-scheduler says of the next one, longhand."""

    def __init__(self, nodes):
        self.nodes = {one.name: one for one in nodes}
        self.on = {one.name: [] for one in nodes}

    def places(self):
        return [(self.nodes[name], there) for name, there in self.on.items()]

    def count(self, terms, key, value, among=None):
        """Return how many tasks that all terms select are in a domain."""
        return sum(
            all(term.selects(there.namespace, dict(there.labels)) for term in terms)
            for place, tasks in self.places()
            if place.labels.get(key) == value and (among is None or place.name in among)
            for there in tasks
        )

    def may(self, one, name):
        place, labels = self.nodes[name], self.nodes[name].labels
        for term in one.peers.away:
            if term.key in labels and self.count([term], term.key, labels[term.key]):
                return False
        for other, tasks in self.places():
            for there in tasks:
                for term in there.peers.away:
                    same = term.key in labels and labels[term.key] == other.labels.get(term.key)
                    if same and term.selects(one.namespace, dict(one.labels)):
                        return False
        if not self._is_near(one, labels) or not all(self._is_even(one, spread, labels) for spread in one.peers.spread):
            return False
        taken = [port for there in self.on[name] for port in there.peers.ports]
        return not any(clash(mine, theirs) for mine in one.peers.ports for theirs in taken) and place is not None

    def _is_near(self, one, labels):
        terms = one.peers.near
        if not terms:
            return True
        if any(term.key not in labels for term in terms):
            return False
        if all(self.count(terms, term.key, labels[term.key]) for term in terms):
            return True
        keyed = [place.name for place, _ in self.places() if any(term.key in place.labels for term in terms)]
        anybody = any(
            all(term.selects(there.namespace, dict(there.labels)) for term in terms)
            for name in keyed
            for there in self.on[name]
        )
        return not anybody and all(term.selects(one.namespace, dict(one.labels)) for term in terms)

    def _is_even(self, one, spread, labels):
        key = spread.term.key
        if key not in labels:
            return False
        keys = [each.term.key for each in one.peers.spread]
        among = {
            place.name
            for place in self.nodes.values()
            if all(each in place.labels for each in keys)
            and (not spread.by_affinity or all(place.labels.get(k) == v for k, v in one.constraints.selector))
            and (not spread.by_taints or not place.taints)
        }
        counts = {self.nodes[name].labels[key] for name in among}
        held = {value: self.count([spread.term], key, value, among) for value in counts}
        least = min(held.values(), default=0) if len(held) >= spread.domains else 0
        itself = spread.term.selects(one.namespace, dict(one.labels))
        return held.get(labels[key], 0) + itself - least <= spread.most


def clash(one, other):
    same = (one.port, one.protocol) == (other.port, other.protocol)
    return same and (one.address == other.address or not one.address or not other.address)


def one_by_one(nodes, tasks, rule, order="arrival", leaving=()):
    """Place task after task where the rule ranks highest of what the world allows; who found no place tries again."""
    problem = problem_of(nodes, tasks, leaving)
    classes, world = problem.classes, World(nodes)
    for one in leaving:
        world.on[one.node].append(one)
    counts = np.zeros((len(classes.count), problem.machines), dtype=int)
    example = examples(problem, tasks)

    def place(row):
        allocated = counts.T @ classes.demand
        fits = classes.masks[classes.mask[row]] & (allocated + classes.demand[row] <= problem.capacity).all(axis=1)
        fits &= [world.may(example[row], name) for name in problem.layout.names]
        if not fits.any():
            return False
        rank, machines = ranking(problem, rule, allocated)
        best = np.where(fits, rank(classes.demand[row], machines), -np.inf).argmax()
        counts[row, best] += 1
        world.on[problem.layout.names[best]].append(example[row])
        return True

    left = {}
    for row in order_of(problem, order):
        left[row] = int(classes.count[row])
        while left[row] and place(row):
            left[row] -= 1
    again = [row for row in left if left[row] and classes.ties[row].waits]
    while True:
        before = sum(left.values())
        for row in again:
            while left[row] and place(row):
                left[row] -= 1
        if sum(left.values()) == before:
            return problem, counts


def examples(problem, tasks):
    """Return a task of each class."""
    ordered = sorted(tasks, key=lambda one: one.arrived)
    found = {}
    for one in ordered:
        key = (one.job, tuple(sorted(one.demand.items())), one.constraints, one.labels, one.peers)
        found.setdefault(key, one)
    assert len(found) == len(problem.classes.count)
    return list(found.values())


def drawn(seed, machines=9, classes=7, most=7, spreads=True):
    """Return nodes in three zones, some without one or tainted, and tasks with constraints of all kinds."""
    draw = np.random.default_rng(seed)
    nodes = [
        machine(
            f"n{row:02}",
            zone=draw.choice(["a", "b", "c", ""]) if draw.random() < 0.9 else "a",
            cpu=1000 * int(draw.integers(2, 8)),
            taints=(Taint("x", "", "PreferNoSchedule"),) if draw.random() < 0.2 else (),
        )
        for row in range(machines)
    ]
    tasks = []
    for row in range(classes):
        key, other = draw.choice([HOST, ZONE]), f"a{draw.integers(classes)}"
        kinds = {
            "away": Peers(away=(of(f"a{row}", key),)),
            "from": Peers(away=(of(other, key),)),
            "near": Peers(near=(of(other, key),)),
            "self": Peers(near=(of(f"a{row}", ZONE),)),
            "port": Peers(ports=(HostPort(int(draw.integers(80, 82)), address=str(draw.choice(["", "1", "2"]))),)),
            "none": Peers(),
        }
        if spreads:
            skew = int(draw.integers(1, 3))
            even = TopologySpread(
                of(f"a{row}", ZONE), skew, int(draw.integers(1, 4)), by_affinity=bool(draw.random() < 0.5)
            )
            kinds |= {
                "zone": Peers(spread=(even,)),
                "host": Peers(spread=(TopologySpread(of(f"a{row}"), skew),)),
                "both": Peers(spread=(even, TopologySpread(of(f"a{row}"), 1))),
                "apart": Peers(spread=(even,), away=(of(f"a{row}"),)),
                "other": Peers(spread=(TopologySpread(of(other, key), skew),)),
            }
        peers = kinds[str(draw.choice(list(kinds)))]
        bound = Constraints(selector=((ZONE, "a"),)) if draw.random() < 0.2 else Constraints()
        one = pod(f"a{row}", peers, 250 * int(draw.integers(1, 9)), arrived=float(row), constraints=bound)
        tasks += [one] * int(draw.integers(1, most + 1))
    return nodes, tasks


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(16))
def test_a_class_goes_where_kube_scheduler_would_let_its_tasks_one_by_one(rule, seed):
    nodes, tasks = drawn(seed)
    leaving = [pod("a0", Peers(ports=(HostPort(80),)), 0, node=nodes[seed % 9].name)] if seed % 2 else []
    problem, expected = one_by_one(nodes, tasks, rule, leaving=leaving)
    packing = pack(problem, everywhere(problem), order_of(problem, "arrival"), rule)
    np.testing.assert_array_equal(tasks_on(problem, packing), expected)
    assert packing.pending == problem.classes.tasks - expected.sum()


def breaches(nodes, tasks_at):
    """Return what is wrong with tasks on nodes, pair by pair; spread is looked at where all matches are spread."""
    labels = {one.name: one.labels for one in nodes}
    everybody = [(name, one) for name, tasks in tasks_at.items() for one in tasks]
    wrong = []
    for place, (name, one) in enumerate(everybody):
        for term in one.peers.away:
            for number, (there, other) in enumerate(everybody):
                same = term.key in labels[name] and labels[name][term.key] == labels[there].get(term.key)
                if number != place and same and term.selects(other.namespace, dict(other.labels)):
                    wrong.append(("away", one.job, other.job))
        for there, other in everybody[place + 1 :]:
            if there == name and any(clash(a, b) for a in one.peers.ports for b in other.peers.ports):
                wrong.append(("port", one.job, other.job))
        for term in one.peers.near:
            matches = [
                there
                for there, other in everybody
                if term.selects(other.namespace, dict(other.labels))
                and labels[there].get(term.key) == labels[name].get(term.key)
            ]
            if not matches:
                wrong.append(("near", one.job))
    for one in {one.job: one for _, one in everybody}.values():
        for spread in one.peers.spread:
            matches = [(n, o) for n, o in everybody if spread.term.selects(o.namespace, dict(o.labels))]
            if {other.job for _, other in matches} != {one.job} or one.constraints.selector or spread.domains > 1:
                continue
            keys = [each.term.key for each in one.peers.spread]
            domains = {said[spread.term.key] for said in labels.values() if all(key in said for key in keys)}
            held = [sum(labels[n].get(spread.term.key) == domain for n, _ in matches) for domain in domains]
            if max(held, default=0) - min(held, default=0) > spread.most:
                wrong.append(("spread", one.job, held))
    return wrong


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(40, 50))
def test_every_placement_keeps_all_constraints(rule, seed):
    nodes, tasks = drawn(seed, machines=40, classes=25, most=12)
    problem, draw = problem_of(nodes, tasks), np.random.default_rng(seed)
    rows = draw.permutation(40)[:25]
    packing = pack(problem, rows, order_of(problem, "sum"), rule, draw=draw)
    counts, example = tasks_on(problem, packing), examples(problem, tasks)
    names = problem.layout.names
    on = {names[row]: [example[c] for c in np.repeat(np.arange(len(example)), counts[:, row])] for row in rows}
    assert breaches([one for one in nodes if one.name in on], on) == []
    assert (counts.T @ problem.classes.demand <= problem.capacity).all()
    assert counts.sum() + packing.pending == problem.classes.tasks > packing.pending
    np.testing.assert_allclose((counts.T @ problem.classes.demand)[rows], packing.allocated)


def holds_somehow(nodes, tasks, pending):
    """Say by trying all orders and nodes whether these nodes take all tasks but so many, one after the other."""
    kinds = list({one.job: one for one in tasks}.values())
    wanted = tuple(tasks.count(kind) for kind in kinds)

    @cache
    def rest(on):
        placed = [sum(counts[kind] for counts in on) for kind in range(len(kinds))]
        if sum(wanted) - sum(placed) <= pending:
            return True
        world = World(nodes)
        for one, counts in zip(nodes, on, strict=True):
            world.on[one.name] = [kinds[kind] for kind, count in enumerate(counts) for _ in range(count)]
        for kind, one in enumerate(kinds):
            if placed[kind] == wanted[kind]:
                continue
            for row, place in enumerate(nodes):
                cpu = one.demand["cpu"] + sum(there.demand["cpu"] for there in world.on[place.name])
                if cpu <= place.allocatable["cpu"] and place.allows(one.constraints) and world.may(one, place.name):
                    more = tuple(count + (number == kind) for number, count in enumerate(on[row]))
                    if rest((*on[:row], more, *on[row + 1 :])):
                        return True
        return False

    return rest(tuple((0,) * len(kinds) for _ in nodes))


@pytest.mark.parametrize("seed", range(60, 80))
def test_no_placement_at_all_beats_the_bound_and_no_rule_beats_the_best_placement(seed):
    nodes, tasks = drawn(seed, machines=4, classes=3, most=2)
    problem, pending = problem_of(nodes, tasks), seed % 2
    rows = np.random.default_rng(seed).permutation(4)
    ordered = [nodes[row] for row in rows]
    best = next((size for size in range(5) if holds_somehow(ordered[:size], tasks, pending)), 5)
    assert fewest_machines(problem, rows, pending) <= best
    for rule in RULES:
        for size in range(5):
            packing = pack(problem, rows[:size], order_of(problem, "sum"), rule)
            assert packing.pending > pending or size >= best


def compacted(nodes, tasks, rule="dovetail", tau=0.0):
    found = compact(problem_of(nodes, tasks), Policy(rule=rule), CompactionLimits(tau=tau, trials=3))
    assert found is not None
    return found


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "peers", [Peers(away=(of("web"),)), Peers(ports=(HostPort(80),)), Peers(spread=(TopologySpread(of("web")),))]
)
def test_one_task_on_a_machine_needs_as_many_machines_as_tasks(rule, peers):
    # Four would have room on one. By spread a prefix of six is enough: one on each.
    found = compacted([machine(f"n{row}") for row in range(10)], [pod("web", peers)] * 6, rule)
    assert found.sizes.tolist() == [6, 6, 6] if not peers.spread else [2, 2, 2]


def test_spread_over_zones_takes_as_many_of_the_smallest_zone_as_the_skew_lets():
    # Zone b has one machine for two tasks; so zone a gets three, though it has room for eight.
    nodes = [machine("a0"), machine("a1"), machine("b0", "b", cpu=2000)]
    problem = problem_of(nodes, [pod("web", Peers(spread=(TopologySpread(of("web", ZONE)),)))] * 8)
    for rule in RULES:
        packing = pack(problem, everywhere(problem), order_of(problem, "arrival"), rule)
        assert (packing.pending, packing.allocated[:, 0].tolist()[2]) == (3, 2000.0)


def test_a_domain_with_a_taint_counts_unless_the_constraint_honours_taints():
    nodes = [machine("a0", cpu=8000), machine("b0", "b", taints=(Taint("gone", "", "NoSchedule"),))]
    for honours, pending in ((False, 4), (True, 0)):
        spread = TopologySpread(of("web", ZONE), by_taints=honours)
        problem = problem_of(nodes, [pod("web", Peers(spread=(spread,)))] * 5)
        assert pack(problem, everywhere(problem), order_of(problem, "arrival"), "stock").pending == pending


def test_a_task_waits_for_the_one_that_it_goes_near_to_come():
    tasks = [pod("client", Peers(near=(of("server"),)), arrived=1.0)] * 2 + [pod("server", arrived=2.0)]
    problem = problem_of([machine("n0"), machine("n1")], tasks)
    packing = pack(problem, everywhere(problem), order_of(problem, "arrival"), "stock")
    assert packing.pending == 0
    assert sorted(packing.allocated[:, 0].tolist()) == [0.0, 3000.0]


def test_what_leaves_with_a_machine_keeps_its_port_there():
    daemon = pod("daemon", Peers(ports=(HostPort(80),)), 0, node="n0")
    problem = problem_of([machine("n0"), machine("n1")], [pod("web", Peers(ports=(HostPort(80),)))] * 2, [daemon])
    packing = pack(problem, everywhere(problem), order_of(problem, "arrival"), "best-fit")
    assert (packing.pending, packing.allocated[:, 0].tolist()) == (1, [0.0, 1000.0])


def test_clones_of_tasks_keep_apart_from_one_another_and_share_the_ports():
    nodes = [machine(f"n{row}") for row in range(3)]
    for peers, pending in ((Peers(away=(of("web"),)), 0), (Peers(ports=(HostPort(80),)), 3)):
        twice = horizontal(problem_of(nodes, [pod("web", peers)] * 3), 2.0, np.array([0]))
        assert pack(twice, np.arange(3), order_of(twice, "arrival"), "stock").pending == pending


def test_clones_of_machines_are_machines_of_their_own_in_the_same_zone():
    problem = problem_of([machine("n0"), machine("n1", "b")], [pod("web", Peers(away=(of("web"),)))] * 4).grown(2)
    assert pack(problem, np.arange(4), order_of(problem, "arrival"), "stock").pending == 0
    by_zone = problem_of([machine("n0"), machine("n1", "b")], [pod("web", Peers(away=(of("web", ZONE),)))] * 4)
    assert pack(by_zone.grown(2), np.arange(4), order_of(by_zone, "arrival"), "stock").pending == 2


def test_tasks_of_another_namespace_or_that_no_selector_selects_have_nothing_to_do_with_it():
    away = Peers(away=(of("web"), PodTerm(HOST, ("n",))))
    tasks = [pod("web", away), pod("web", namespace="m", job="m"), pod("db", arrived=1.0)]
    problem = problem_of([machine("n0")], tasks)
    assert pack(problem, np.arange(1), order_of(problem, "arrival"), "stock").pending == 0
    assert problem.capacity[0, 1] == 16 * GIB


def test_without_constraints_between_tasks_there_are_no_relations():
    assert problem_of([machine("n0")], [pod("web")]).relations is None

"""A cluster whose pods have no gate; the test plays kube-scheduler's part and asks about one pod at a time."""

import dataclasses

import numpy as np

from extender.cluster.events import NodesListed, PodGone, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.control.backlog.backlog import Backlog
from extender.control.filter_order.node_sample import NodeSample
from extender.control.filter_order.order import FilterOrder
from extender.control.filter_order.planning import Planning
from extender.control.filter_order.questions import Questions
from extender.control.filter_order.slot_planner import SlotPlanner
from extender.control.plan_input.allowed_nodes import AllowedNodes
from extender.control.plan_input.builder import PlanInputBuilder
from extender.control.plan_input.preferred_nodes import PreferredNodes
from extender.planner import Planner, Policy
from extender.verdict import judge
from tests.service.control.scene import OURS, pod


def free(name, cpu=100, **more):
    """Return a pod without a gate."""
    return pod(name, cpu, gates=(), **more)


class Asked:
    """`plans` counts the plans that were made. `placed`: at which levels pods passed.

    The thread that plans gets its turn before each question while `beside`, and where a question waits for it.
    """

    def __init__(self, *nodes, queues=(), policy=None, plan_seconds=0.05, levels=()):
        self.now, self.plans, self.pods, self.placed, self.beside = 100.0, 0, {}, [], True
        self.ledger = Ledger(in_flight_seconds=15.0)
        self.backlog = Backlog([OURS], by_filter=True)
        policy = policy or Policy(srtf=0.0)
        planner = Planner(policy)
        clock, read = (lambda: self.now), self._read_clock
        times = {"flight_time": clock, "clock": clock, "now": read}
        questions = Questions(self.ledger, self.backlog, NodeSample(policy), **times)
        self.builder = PlanInputBuilder(self.backlog, queues, starved_after=policy.starved_after, levels=levels)
        self.planner = SlotPlanner(self.ledger, self.backlog, self.builder, planner, **times)
        self.failures = 0
        self.planning = Planning(
            self.planner,
            questions,
            plan_seconds=plan_seconds,
            clock=clock,
            now=read,
            planned=self._count,
            failed=self._count_failure,
            wait=lambda _seconds: self.planning.step(),
        )
        allowed = AllowedNodes(self.backlog)
        self.turns = FilterOrder(
            self.backlog,
            questions,
            self.planning,
            allowed,
            PreferredNodes(self.backlog, allowed, levels),
            clock=clock,
            placed=lambda level, _seconds: self.placed.append(level),
        )
        self.apply(NodesListed(list(nodes)))

    def apply(self, event):
        self.backlog.apply(event, self.now)
        self.ledger.apply(event)
        self.planning.note_change()

    def see(self, *pods):
        for it in pods:
            self.pods[it.name] = it
            self.apply(PodSeen(it))

    def change(self, name, **changes):
        before = self.pods[name]
        self.see(dataclasses.replace(before, resource_version=before.resource_version + 1, **changes))

    def ask(self, name, nodes=None):
        """Do as filter does, asked about these nodes (None: all).

        Return why the pod has to wait, or the node that was chosen for it; the names of several; None for any.
        """
        it = self.pods[name]
        if self.beside:
            self.planning.step()
        self.ledger.forget(it.uid)
        snapshot = self.ledger.snapshot(self.now)
        fits = judge(snapshot, it).passed
        if nodes is not None:
            fits &= np.isin(snapshot.layout.names, nodes)
        if not fits.any():
            return "no room"
        found = self.turns.standing(it, snapshot, fits)
        if found.waits is None:
            row = snapshot.layout.rows.get(found.node, -1)
            there = fits if found.among is None else found.among
            there = there if row < 0 else np.arange(len(fits)) == row
            assert self.ledger.assume(it, there, snapshot, self.now)
            if found.among is not None:
                assert not (found.among & ~fits).any()
                return np.array(snapshot.layout.names)[found.among].tolist()
        return found.waits or found.node

    def bind(self, name, node):
        self.change(name, node=node)

    def remove(self, name):
        self.apply(PodGone(self.pods.pop(name).uid))

    def _read_clock(self):
        return self.now

    def _count(self, _seconds):
        self.plans += 1

    def _count_failure(self):
        self.failures += 1

"""A cluster whose pods have no gate; the test plays kube-scheduler's part and asks about one pod at a time."""

import dataclasses

import numpy as np

from extender.cluster.events import NodesListed, PodGone, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.control.backlog.backlog import Backlog
from extender.control.filter_order.order import FilterOrder
from extender.control.plan_input.builder import PlanInputBuilder
from extender.planner import Planner, Policy
from extender.verdict import judge
from tests.service.control.scene import OURS, pod


def free(name, cpu=100, **more):
    """Return a pod without a gate."""
    return pod(name, cpu, gates=(), **more)


class Asked:
    """`plans` counts the plans that were made; a plan costs `cost` seconds. `placed`: at which levels pods passed."""

    def __init__(self, *nodes, queues=(), policy=None, plan_seconds=0.05, levels=()):
        self.now, self.cost, self.plans, self.pods, self.placed = 100.0, 0.0, 0, {}, []
        self.ledger = Ledger(in_flight_seconds=15.0)
        self.backlog = Backlog([OURS], by_filter=True)
        policy = policy or Policy(srtf=0.0)
        self.turns = FilterOrder(
            self.ledger,
            self.backlog,
            PlanInputBuilder(self.backlog, queues, starved_after=policy.starved_after, levels=levels),
            Planner(policy),
            plan_seconds=plan_seconds,
            flight_time=lambda: self.now,
            clock=lambda: self.now,
            now=self._read_clock,
            planned=self._count,
            placed=lambda level, _seconds: self.placed.append(level),
        )
        self.apply(NodesListed(list(nodes)))

    def apply(self, event):
        self.backlog.apply(event, self.now)
        self.ledger.apply(event)

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

"""Waiting for news: a pod refused by what the next event would have changed sleeps for minutes.

Docs: docs/concepts/in-flight.md.
"""

import time
from dataclasses import dataclass, field

import numpy as np

from extender.adapters.http.refused import RefusedPods
from extender.adapters.http.request_context import LANDING_SECONDS, Readiness
from extender.arrays import Rows
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.resources import IO_DIMENSIONS
from extender.verdict import judge

_LAG_SECONDS = 0.05
"""Our watch is hardly ever further behind kube-scheduler's."""


@dataclass(frozen=True, slots=True)
class EventWait:
    """`wait_seconds` bounds the wait for pods in flight to land; `refused` keeps the budget of the other waits."""

    ledger: Ledger
    readiness: Readiness
    wait_seconds: float
    refused: RefusedPods = field(default_factory=RefusedPods)

    def wait(self, pod: Pod, view: Snapshot, rows: Rows, started: float, again: bool) -> bool:
        """Wait for news that may yet make the pod fit; False where there is nothing to wait for, or none came.

        Either a pod in flight stands in the way, and its binding may show any moment. Or kube-scheduler asks because
        room has appeared, and heard of it before we did: refused then, the pod would sleep for minutes with room there.
        So it may be where it asks `again` about a pod that it has no other reason to ask about.
        """
        landing = started + self.wait_seconds - time.monotonic()
        if landing > 0 and self._may_land(pod, view, rows):
            return self.ledger.wait_past(view, landing)
        lagging = started + _LAG_SECONDS - time.monotonic()
        return lagging > 0 and (again or self._may_be_behind(pod, view, rows)) and self._wait_for_lag(view, lagging)

    def _may_be_behind(self, pod: Pod, view: Snapshot, rows: Rows) -> bool:
        """Say whether kube-scheduler may have heard what we have not.

        It must have where CPU, memory or an extended resource is short: it counts these itself, and has just let these
        nodes pass.
        """
        short = judge(view, pod, in_flight=False).short[rows[rows >= 0]]
        theirs = [view.layout.axis.index(name) for name in view.layout.axis if name not in IO_DIMENSIONS]
        return bool(np.isin(short, theirs).any())

    def wait_for_turn(self, pod: Pod, view: Snapshot, started: float) -> bool:
        """Wait for news that may yet make it the pod's turn; False where there is nothing to wait for, or none came.

        While pods are in flight there is none: their bindings wake who was refused.
        """
        lagging = started + _LAG_SECONDS - time.monotonic()
        again = lagging > 0 and not view.flights and self.refused.woken_by_cluster(pod)
        return again and self._wait_for_lag(view, lagging)

    def _wait_for_lag(self, view: Snapshot, seconds: float) -> bool:
        started = time.monotonic()
        if not self.refused.may_wait(started):
            return False
        came = self.ledger.wait_past(view, seconds)
        self.refused.waited(time.monotonic() - started)
        return came

    def _may_land(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> bool:
        """Say whether only pods in flight stand in the way, one so young that its binding may show any moment."""
        if not snapshot.flights or not judge(snapshot, pod, in_flight=False).passed[rows[rows >= 0]].any():
            return False
        newest = self.ledger.newest_flight_since()
        return newest is not None and self.readiness.flight_time() - newest < LANDING_SECONDS

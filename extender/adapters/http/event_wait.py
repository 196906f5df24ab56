"""Waiting for an event that may make a refused pod fit: such a pod sleeps for minutes (docs/concepts/in-flight.md)."""

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

LAG_SECONDS = 0.05
"""Our watch is hardly ever further behind kube-scheduler's."""


@dataclass(frozen=True, slots=True)
class EventWait:
    """`wait_seconds` bounds a wait for pods in flight to land, `lag_seconds` any other; `refused` bounds their sum."""

    ledger: Ledger
    readiness: Readiness
    wait_seconds: float
    refused: RefusedPods = field(default_factory=RefusedPods)
    lag_seconds: float = LAG_SECONDS

    def wait(self, pod: Pod, snapshot: Snapshot, rows: Rows, started: float, again: bool) -> bool:
        """Wait for an event that may make the pod fit; False where none can, or none came in time.

        There are two cases. Either a pod in flight stands in the way, and its binding may show at any moment. Or
        kube-scheduler asks because room has appeared, and its watch heard of that before ours: a pod refused then would
        sleep for minutes beside free room. That may be so where it asks `again` about a pod that has not changed.
        """
        landing = started + self.wait_seconds - time.monotonic()
        if landing > 0 and self._may_land(pod, snapshot, rows):
            return self.ledger.wait_past(snapshot, landing)
        lagging = started + self.lag_seconds - time.monotonic()
        behind = lagging > 0 and (again or self._may_be_behind(pod, snapshot, rows))
        return behind and self._wait_for_lag(snapshot, lagging)

    def wait_for_turn(self, pod: Pod, snapshot: Snapshot, started: float) -> bool:
        """Wait for an event that may bring the pod's turn; False where none can, or none came in time.

        While pods are in flight it does not wait: their bindings wake the pods that were refused.
        """
        lagging = started + self.lag_seconds - time.monotonic()
        again = lagging > 0 and not snapshot.flights and self.refused.woken_by_cluster(pod)
        return again and self._wait_for_lag(snapshot, lagging)

    def _may_be_behind(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> bool:
        """Say whether kube-scheduler may have heard of an event that we have not.

        It must have where CPU, memory or an extended resource is short: it counts these itself, and has just let these
        nodes pass.
        """
        short = judge(snapshot, pod, rows, in_flight=False).short[rows[rows >= 0]]
        axis = snapshot.layout.axis
        counted_by_scheduler = [index for index, name in enumerate(axis) if name not in IO_DIMENSIONS]
        return bool(np.isin(short, counted_by_scheduler).any())

    def _wait_for_lag(self, snapshot: Snapshot, seconds: float) -> bool:
        started = time.monotonic()
        if not self.refused.may_wait(started):
            return False
        came = self.ledger.wait_past(snapshot, seconds)
        self.refused.waited(time.monotonic() - started)
        return came

    def _may_land(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> bool:
        """Say whether only pods in flight stand in the way, one so young that its binding may show any moment."""
        if not snapshot.flights or not judge(snapshot, pod, rows, in_flight=False).passed[rows[rows >= 0]].any():
            return False
        newest = self.ledger.newest_flight_since()
        return newest is not None and self.readiness.flight_time() - newest < LANDING_SECONDS

"""Wires the prediction of peaks into `control`, where `opportunistic.threshold` is `auto`."""

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from extender.adapters.usage.access import Access
from extender.adapters.usage.history import HistoryReader
from extender.adapters.usage.queries import Queries
from extender.adapters.usage.report import AutoReport
from extender.app.liveness import Liveness
from extender.cluster.ledger.layout import Layout
from extender.cluster.model import Node, Pod
from extender.control.idle_room.predicted import PeakPredictor, PredictedPeaks
from extender.control.idle_room.room import Thresholds
from extender.settings.sections import OpportunisticSettings, UsageSettings

_EVERY_SECONDS = 30.0
_FIRST_SECONDS = 1.0
"""As long as nothing was predicted, it is tried so often: nodes may not be known yet."""
_GOOD_SECONDS = 300.0
"""Peaks that are older say nothing any more: there is no room until there are new ones."""

log = structlog.get_logger()


class Predicting:
    """Reads the history of use and predicts peaks from it, in a thread of its own; any other may ask."""

    def __init__(
        self,
        usage: UsageSettings,
        wanted: OpportunisticSettings,
        nodes: Callable[[], Sequence[Node]],
        pods: Callable[[], Sequence[Pod]],
        *,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        queries = Queries(
            usage.window_seconds, usage.node_labels, usage.matchers, usage.node_queries, usage.pod_queries
        )
        self.reader = HistoryReader(Access(usage.url, usage.access), queries, nodes, clock=clock)
        seen_after = usage.window_seconds + wanted.evict_after_samples * usage.interval_seconds
        self._predictor = PeakPredictor(wanted.eviction_budget, seen_after)
        self._pods, self._clock, self._timer = pods, clock, timer
        self._layout: Callable[[], Layout] | None = None
        self._leads: Callable[[], bool] = lambda: False
        self._thresholds = Thresholds(None)
        self._last: tuple[float, PredictedPeaks] | None = None

    def follow(self, layout: Callable[[], Layout], leads: Callable[[], bool], thresholds: Thresholds) -> None:
        """Take what says which rows nodes have, whether we lead, and up to what peaks may rise."""
        self._layout, self._leads, self._thresholds = layout, leads, thresholds

    def peaks(self) -> PredictedPeaks | None:
        """Return the peaks that are good now; None where there are none."""
        last = self._last
        return last[1] if last is not None and self._timer() - last[0] <= _GOOD_SECONDS else None

    def note_preemption(self, victim: Pod, resource: str, *, dry_run: bool) -> None:  # noqa: ARG002 - of any resource
        """Note an eviction. One that was only counted tells as much of the peak."""
        self._predictor.note_eviction(victim, self._clock())

    def start(self, liveness: Liveness, stopped: threading.Event) -> None:
        """Begin, in a thread of its own."""
        liveness.start("history", partial(self._run, stopped))

    def turn(self) -> None:
        """Read what is missing, and predict. Nothing that goes wrong leaves here: the last peaks grow old then."""
        self.reader.read()
        if self._layout is None or not self._layout().names:
            return
        try:
            peaks = self._predictor.predict(
                self._layout(), self._pods(), self.reader.history, self._clock(), leads=self._leads()
            )
            self._last = (self._timer(), peaks)
        except Exception:  # whatever it is: a loop that ended here would never predict again
            log.exception("peaks could not be predicted")

    def report(self) -> AutoReport:
        """Return what doctor is told."""
        peaks = self.peaks()
        nodes = 0 if peaks is None else len(peaks.layout.names)
        return AutoReport(
            failure=self.reader.failure,
            nodes=nodes,
            known=0 if peaks is None else peaks.known,
            sigmas=None if peaks is None else peaks.sigmas,
            room={} if peaks is None else peaks.room(self._thresholds),
        )

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            begun = time.monotonic()
            self.turn()
            pause = _FIRST_SECONDS if self._last is None else _EVERY_SECONDS
            stopped.wait(max(0.0, begun + pause - time.monotonic()))

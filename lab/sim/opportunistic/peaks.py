"""Predicted peaks in the simulator: the service's own predictor, on a history of what was sampled here.

The service keeps a sample of every five minutes, which is every twentieth scrape where these are 15 s apart. Here it is
every twentieth scrape as well: tasks of half a minute are to five minutes as pods are to hours. The warm-up is not
scaled: it is two hours, so in a shorter run a task counts by its class. Peaks are asked for only while somebody waits:
tasks that come and go before that are not known.
"""

from collections import deque
from collections.abc import Mapping

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.ledger.layout import Layout
from extender.cluster.model import Pod
from extender.cluster.pods.identity import Identity
from extender.cluster.resources import DIMENSIONS
from extender.cluster.usage_history import UsageHistory, Who
from extender.control.idle_room.predicted import PeakPredictor, PredictedPeaks
from extender.policy.peak import PeakTuning
from lab.sim.engine.use.sampling import Sampling, Seen
from lab.sim.engine.use.tasks import Tasks

_SCRAPES = 20
"""Every so many scrapes a sample is kept."""

_STEPS = 30
"""So many samples are kept, as in the service."""

_PREDICTIONS = 4
"""Peaks are predicted so often between two samples."""

_SAMPLES_TO_EVICT = 3


class SimulatedPeaks:
    """Keeps a history of samples, and predicts the peaks of all nodes of a `layout` by it."""

    def __init__(self, layout: Layout, sampling: Sampling, names: Mapping[int, str], budget: float) -> None:
        self._layout, self._names = layout, names
        self._step = _SCRAPES * sampling.scrape
        blind = sampling.window_seconds + _SAMPLES_TO_EVICT * sampling.scrape
        self._predictor = PeakPredictor(budget, blind, PeakTuning(step_seconds=self._step))
        self._kept: deque[Seen] = deque(maxlen=_STEPS)
        self._history = UsageHistory()
        self._last: PredictedPeaks | None = None

    def take(self, seen: Seen) -> None:
        """Keep a sample, where it is time to."""
        if not self._kept or seen.at >= self._kept[-1].at + self._step:
            self._kept.append(seen)
            self._history = self._as_history()

    def peaks(self, running: Tasks, now: float) -> PredictedPeaks:
        """Return the peaks by the tasks that run; they are not made anew at every moment."""
        if self._last is None or now >= self._last.at + self._step / _PREDICTIONS:
            pods = self.pods(running, np.arange(len(running.task)))
            self._last = self._predictor.predict(self._layout, pods, self._history, now)
        return self._last

    def note_evictions(self, running: Tasks, places: Rows, now: float) -> None:
        """Note that the tasks at these places are evicted."""
        for pod in self.pods(running, places):
            self._predictor.note_eviction(pod, now)

    def pods(self, running: Tasks, places: Rows) -> list[Pod]:
        """Return the tasks at these places as the pods that they stand for."""
        demand, names = running.demand.T, self._layout.names
        return [
            Pod(
                uid=f"{running.task[place]}-{running.began[place]}",
                namespace="",
                name=str(running.task[place]),
                demand=dict(zip(DIMENSIONS, demand[place].tolist(), strict=True)),
                node=names[running.node[place]],
                started=float(running.began[place]),
                identity=Identity(stage=self._names[int(running.stage[place])]),
                opportunistic=bool(running.opportunistic[place]),
            )
            for place in places.tolist()
        ]

    def _as_history(self) -> UsageHistory:
        last, names = self._kept[-1], self._layout.names
        rows: dict[Who, int] = {(name, "", ""): row for row, name in enumerate(names)}
        samples: list[tuple[Rows, Floats]] = []
        for seen in self._kept:
            whose = [
                (names[node], "", str(task)) for node, task in zip(seen.node.tolist(), seen.task.tolist(), strict=True)
            ]
            samples.append((np.array([rows.setdefault(key, len(rows)) for key in whose], dtype=np.intp), seen.tasks))
        use = np.full((len(rows), len(self._kept), len(DIMENSIONS)), np.nan)
        for column, (seen, (row, amounts)) in enumerate(zip(self._kept, samples, strict=True)):
            use[: len(names), column], use[row, column] = seen.nodes, amounts
        times = np.array([seen.at for seen in self._kept])
        return UsageHistory(times, rows, use, last.at - last.since, self._step)

"""Who is asked for a node's peak: those of the EuroSys paper, the thresholds of UBIS, `auto`, and an oracle."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.policy.peak import History, PeakTuning, peak, percentile_peak, sigma_peak
from extender.policy.slack import idle_room, ramped_up

AUTO, ORACLE = "auto", "oracle"
SIGMAS = 5.0
_PART = 0.9


@dataclass(frozen=True, slots=True)
class Question:
    """What is known of the nodes when they are asked about.

    `requests` [N, 1]: the sum of what is requested. `unmeasured` [N, 1]: that of the pods without a sample. `future`
    [N, 1]: the peak to come of the pods that are there, which only the oracle looks at. `sigmas`: the N of `auto`.
    """

    history: History
    requests: Floats
    unmeasured: Floats
    capacity: Floats
    future: Floats
    sigmas: float
    tuning: PeakTuning


Predictor = Callable[[Question], Floats]


def _requests(asked: Question) -> Floats:
    return np.maximum(_PART * asked.requests, asked.history.present)


def _threshold(t_alloc: float) -> Predictor:
    """Return what UBIS' room with this T_alloc says of the peak: the capacity without that room."""

    def predict(asked: Question) -> Floats:
        nothing = np.zeros_like(asked.capacity)
        used = ramped_up(asked.history.present, nothing, asked.unmeasured)
        return asked.capacity - idle_room(used, asked.capacity, np.array(t_alloc))

    return predict


PREDICTORS: Mapping[str, Predictor] = {
    "requests": _requests,
    "percentiles": lambda asked: percentile_peak(asked.history, asked.tuning),
    "sigma": lambda asked: sigma_peak(asked.history, SIGMAS, asked.tuning),
    "maximum": lambda asked: peak(asked.history, SIGMAS, asked.tuning),
    "fixed.0.7": _threshold(0.7),
    "fixed.0.8": _threshold(0.8),
    "fixed.0.9": _threshold(0.9),
    AUTO: lambda asked: peak(asked.history, asked.sigmas, asked.tuning),
    ORACLE: lambda asked: asked.future,
}
"""By name; each returns the peak of each node [N, 1]."""

WORDS: Mapping[str, str] = {
    "requests": "0.9 x requests",
    "percentiles": "sum of p99",
    "sigma": "mean + 5 sigma",
    "maximum": "larger of both",
    "fixed.0.7": "T_alloc 0.7",
    "fixed.0.8": "T_alloc 0.8",
    "fixed.0.9": "T_alloc 0.9",
    AUTO: "auto",
    ORACLE: "oracle",
}

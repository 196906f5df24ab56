import numpy as np
import pytest

from extender.policy.peak import History, PeakTuning
from lab.experiments.peaks.predictors import AUTO, PREDICTORS, WORDS, Question


def question(*, sigmas=5.0):
    """One node of 100 with pods of 40 and 50 that used 10 and 20, then 20 and 20; now it uses 40."""
    use = np.array([[10.0, 20], [20, 20]])[:, :, np.newaxis]
    requests = np.array([[40.0], [50]])
    return Question(
        history=History(use, np.zeros(2, dtype=np.intp), requests, requests, np.array([[40.0]])),
        requests=np.array([[90.0]]),
        unmeasured=np.array([[5.0]]),
        capacity=np.array([[100.0]]),
        future=np.array([[60.0]]),
        sigmas=sigmas,
        tuning=PeakTuning(warm_up_seconds=600.0),
    )


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("requests", 81),
        ("percentiles", 40),
        ("sigma", 35 + 5 * 5),  # totals 30 and 40
        ("maximum", 60),
        ("fixed.0.7", 75),
        ("fixed.0.8", 65),  # room 80 - 40 - 5
        ("fixed.0.9", 55),
        ("auto", 60),
        ("oracle", 60),
    ],
)
def test_each_predictor_says_its_peak(name, peak):
    assert PREDICTORS[name](question()).item() == pytest.approx(peak)


def test_auto_follows_its_n_and_the_others_do_not():
    low, high = question(sigmas=2.0), question(sigmas=9.0)
    changed = [name for name, predict in PREDICTORS.items() if predict(low).item() != predict(high).item()]
    assert changed == [AUTO]


def test_every_predictor_has_words():
    assert list(WORDS) == list(PREDICTORS)

"""A random search that anyone can repeat: from the best so far it changes a few values, and keeps what is better."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from lab.experiments.fit.targets import Factors, MeasuredCells, Target

_FIRST_SPREAD, _LAST_SPREAD = 0.5, 0.08
_CHANGED = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """What was tried: its place in the search, the factors on the values that it began from, and what came of it."""

    number: int
    factors: Factors
    measured: MeasuredCells
    distance: float


def search(target: Target, evaluate: Callable[[Factors], MeasuredCells], trials: int, seed: int) -> Iterator[Trial]:
    """Yield the beginning, then each trial that is better than all before it.

    A trial multiplies up to three values by factors drawn around 1: widely at first, then ever less.
    """
    rng = np.random.default_rng(seed)
    names = [knob.name for knob in target.knobs]
    best = _trial(target, evaluate, 0, dict.fromkeys(names, 1.0))
    yield best
    for number in range(1, trials):
        spread = _FIRST_SPREAD * (_LAST_SPREAD / _FIRST_SPREAD) ** (number / max(trials - 1, 1))
        chosen = rng.choice(names, size=rng.integers(1, min(_CHANGED, len(names)) + 1), replace=False).tolist()
        drawn = np.exp(rng.normal(0.0, spread, len(chosen))).tolist()
        changed = dict(best.factors) | {
            name: best.factors[name] * factor for name, factor in zip(chosen, drawn, strict=True)
        }
        trial = _trial(target, evaluate, number, changed)
        if trial.distance < best.distance:
            best = trial
            yield best


def _trial(target: Target, evaluate: Callable[[Factors], MeasuredCells], number: int, factors: Factors) -> Trial:
    measured = evaluate(factors)
    return Trial(number, factors, measured, measured.distance(target))

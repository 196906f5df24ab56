"""The paper's main numbers (Tetris, 5.2 and 5.3.1), by the ids of our rows, and how ours are found."""

import math
from collections.abc import Callable, Mapping

from lab.experiments.seeds import Seeds
from lab.experiments.tetris.comparison import Against, PaperClaim
from lab.experiments.tetris.gains import (
    ATTAINABLE_MAKESPAN,
    ATTAINABLE_MEAN,
    ATTAINABLE_MEDIAN,
    MAKESPAN,
    MEAN_JOB_TIME,
    MEDIAN_CHANGE,
    SLOWED,
    SLOWED_MEAN,
    SLOWED_WORST,
    Quantity,
    job_time_share,
    makespan_share,
    over_seeds,
)

_Note = Callable[[Mapping[str, Against]], str]


def suite_claims() -> list[PaperClaim]:
    """Return what the paper says of its deployment (figure 4; 5.1, highlights)."""
    makespans = {"capacity": 29.0, "drf": 27.5, "exact drf": None}
    medians = {"drf": 30.0, "capacity": 30.0, "exact drf": None}
    return [
        *_claims("suite.makespan", makespans, MAKESPAN, _nothing, ATTAINABLE_MAKESPAN),
        *_claims("suite.median_job_time", medians, MEDIAN_CHANGE, _other_medians, ATTAINABLE_MEDIAN),
        PaperClaim("suite.upper_bound_share", "fair", _share, 80.0, _makespan_share),
        PaperClaim("suite.slowed_jobs", "drf", _each(SLOWED), 6.0, _slowed_note("drf")),
        *_claims("suite.slowed_jobs", {"fair": None, "capacity": None}, SLOWED, _slowed_note),
        *_claims("suite.slowed_by", dict.fromkeys(("drf", "fair", "capacity")), SLOWED_MEAN, _slowed_mean_note),
    ]


def facebook_claims() -> list[PaperClaim]:
    """Return what the paper says of the Facebook trace (5.3.1)."""
    job_times = {"fair": 40.0, "drf": 35.0, "exact drf": None}
    makespans = {"fair": 33.0, "drf": 24.0, "exact drf": None}
    return [
        *_claims("facebook.mean_job_time", job_times, MEAN_JOB_TIME, _other_means, ATTAINABLE_MEAN),
        *_claims("facebook.makespan", makespans, MAKESPAN, _nothing, ATTAINABLE_MAKESPAN),
        PaperClaim("facebook.upper_bound_share", "fair", _share, 81.0, _makespan_share),
        PaperClaim("facebook.slowed_jobs", "fair", _each(SLOWED), 6.0, _slowed_note("fair")),
        *_claims("facebook.slowed_jobs", {"drf": None}, SLOWED, _slowed_note),
        *_claims("facebook.slowed_by", dict.fromkeys(("fair", "drf")), SLOWED_MEAN, _slowed_mean_note),
    ]


def _claims(
    name: str,
    published: Mapping[str, float | None],
    quantity: Quantity,
    note: Callable[[str], _Note],
    attainable: Quantity | None = None,
) -> list[PaperClaim]:
    """Return a claim about a quantity against each baseline of which the paper, or we, have a number."""
    return [
        PaperClaim(
            f"{name}_vs_{baseline.replace(' ', '_')}", baseline, _each(quantity), paper, note(baseline), attainable
        )
        for baseline, paper in published.items()
    ]


def _each(quantity: Quantity) -> Callable[[Against], Seeds]:
    return lambda against: over_seeds(against.ours, quantity)


def _share(against: Against) -> Seeds:
    return job_time_share(against.ours, against.bound)


def _nothing(_name: str) -> _Note:
    return lambda _: ""


def _other_medians(name: str) -> _Note:
    def note(against: Mapping[str, Against]) -> str:
        change = over_seeds(against[name].ours, lambda pair: pair.change_of_median).mean
        return f"the median of the jobs' changes, as in figure 4a; the median job time itself changes by {change:.1f} %"

    return note


def _other_means(name: str) -> _Note:
    def note(against: Mapping[str, Against]) -> str:
        ours = against[name].ours
        mean = over_seeds(ours, lambda pair: pair.mean_change).mean
        median = over_seeds(ours, MEDIAN_CHANGE).mean
        return f"the change of the mean; the jobs' changes are {mean:.1f} % in the mean, {median:.1f} % in the median"

    return note


def _makespan_share(against: Mapping[str, Against]) -> str:
    fair = against["fair"]
    share = makespan_share(fair.ours, fair.bound).mean
    bound = over_seeds(fair.bound, MEAN_JOB_TIME).mean
    text = f"of the bound's gain in mean job time over the fair scheduler ({bound:.1f} %)"
    return text if math.isnan(share) else f"{text}; of its gain in makespan {share:.1f} %"


def _slowed_note(name: str) -> _Note:
    return lambda _: f"jobs slower than under {name} by over 1 %"


def _slowed_mean_note(name: str) -> _Note:
    def note(against: Mapping[str, Against]) -> str:
        worst = over_seeds(against[name].ours, SLOWED_WORST).high
        return f"by how much those are slower than under {name}, in the mean (no such job: 0); at worst {worst:.1f} %"

    return note

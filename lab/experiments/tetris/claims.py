"""The paper's main numbers (Tetris, 5.2 and 5.3.1), by the ids of our rows, and how ours are found."""

import math
from collections.abc import Callable, Mapping, Sequence

from lab.experiments.seeds import Seeds
from lab.experiments.tetris.comparison import Against, PaperClaim
from lab.experiments.tetris.gains import RunPair, job_time_share, makespan_share, over_seeds


def suite_claims() -> list[PaperClaim]:
    """Return what the paper says of its deployment (figure 4; 5.1, highlights)."""
    return [
        PaperClaim("suite.makespan_vs_capacity", "capacity", _each(_makespan), 29.0, _nothing, _attainable_makespan),
        PaperClaim("suite.makespan_vs_drf", "drf", _each(_makespan), 27.5, _nothing, _attainable_makespan),
        PaperClaim("suite.makespan_vs_exact_drf", "exact drf", _each(_makespan), None, _nothing, _attainable_makespan),
        PaperClaim(
            "suite.median_job_time_vs_drf", "drf", _each(_median), 30.0, _other_medians("drf"), _attainable_median
        ),
        PaperClaim(
            "suite.median_job_time_vs_capacity",
            "capacity",
            _each(_median),
            30.0,
            _other_medians("capacity"),
            _attainable_median,
        ),
        PaperClaim(
            "suite.median_job_time_vs_exact_drf",
            "exact drf",
            _each(_median),
            None,
            _other_medians("exact drf"),
            _attainable_median,
        ),
        PaperClaim("suite.upper_bound_share", "fair", _share, 80.0, _makespan_share("fair")),
        PaperClaim("suite.slowed_jobs", "drf", _each(_slowed), 6.0, _slowed_note("drf")),
        PaperClaim("suite.slowed_jobs_vs_fair", "fair", _each(_slowed), None, _slowed_note("fair")),
        PaperClaim("suite.slowed_jobs_vs_capacity", "capacity", _each(_slowed), None, _slowed_note("capacity")),
        *_slowed_by("suite", ("drf", "fair", "capacity")),
    ]


def facebook_claims() -> list[PaperClaim]:
    """Return what the paper says of the Facebook trace (5.3.1)."""
    return [
        PaperClaim(
            "facebook.mean_job_time_vs_fair", "fair", _each(_mean), 40.0, _other_means("fair"), _attainable_mean
        ),
        PaperClaim("facebook.mean_job_time_vs_drf", "drf", _each(_mean), 35.0, _other_means("drf"), _attainable_mean),
        PaperClaim(
            "facebook.mean_job_time_vs_exact_drf",
            "exact drf",
            _each(_mean),
            None,
            _other_means("exact drf"),
            _attainable_mean,
        ),
        PaperClaim("facebook.makespan_vs_fair", "fair", _each(_makespan), 33.0, _nothing, _attainable_makespan),
        PaperClaim("facebook.makespan_vs_drf", "drf", _each(_makespan), 24.0, _nothing, _attainable_makespan),
        PaperClaim(
            "facebook.makespan_vs_exact_drf", "exact drf", _each(_makespan), None, _nothing, _attainable_makespan
        ),
        PaperClaim("facebook.upper_bound_share", "fair", _share, 81.0, _makespan_share("fair")),
        PaperClaim("facebook.slowed_jobs", "fair", _each(_slowed), 6.0, _slowed_note("fair")),
        PaperClaim("facebook.slowed_jobs_vs_drf", "drf", _each(_slowed), None, _slowed_note("drf")),
        *_slowed_by("facebook", ("fair", "drf")),
    ]


def _slowed_by(group: str, baselines: Sequence[str]) -> list[PaperClaim]:
    """Return by how much the slowed jobs are slower, in the mean, than under each baseline."""
    return [
        PaperClaim(f"{group}.slowed_by_vs_{name}", name, _each(_slowed_mean), None, _slowed_mean_note(name))
        for name in baselines
    ]


def _each(figure: Callable[[RunPair], float]) -> Callable[[Against], Seeds]:
    return lambda against: over_seeds(against.ours, figure)


def _makespan(pair: RunPair) -> float:
    return pair.makespan


def _mean(pair: RunPair) -> float:
    return pair.mean_job_time


def _median(pair: RunPair) -> float:
    return pair.median_change


def _slowed(pair: RunPair) -> float:
    return pair.slowed.percent


def _slowed_mean(pair: RunPair) -> float:
    return pair.slowed.mean


def _attainable_makespan(pair: RunPair) -> float:
    return pair.attainable_makespan


def _attainable_mean(pair: RunPair) -> float:
    return pair.attainable_mean


def _attainable_median(pair: RunPair) -> float:
    return pair.attainable_median


def _share(against: Against) -> Seeds:
    return job_time_share(against.ours, against.bound)


def _nothing(_against: Mapping[str, Against]) -> str:
    return ""


def _other_medians(name: str) -> Callable[[Mapping[str, Against]], str]:
    def note(against: Mapping[str, Against]) -> str:
        change = over_seeds(against[name].ours, lambda pair: pair.change_of_median).mean
        return f"the median of the jobs' changes, as in figure 4a; the median job time itself changes by {change:.1f} %"

    return note


def _other_means(name: str) -> Callable[[Mapping[str, Against]], str]:
    def note(against: Mapping[str, Against]) -> str:
        ours = against[name].ours
        mean = over_seeds(ours, lambda pair: pair.mean_change).mean
        median = over_seeds(ours, _median).mean
        return f"the change of the mean; the jobs' changes are {mean:.1f} % in the mean, {median:.1f} % in the median"

    return note


def _makespan_share(name: str) -> Callable[[Mapping[str, Against]], str]:
    def note(against: Mapping[str, Against]) -> str:
        share = makespan_share(against[name].ours, against[name].bound).mean
        bound = over_seeds(against[name].bound, _mean).mean
        text = f"of the bound's gain in mean job time over the {name} scheduler ({bound:.1f} %)"
        return text if math.isnan(share) else f"{text}; of its gain in makespan {share:.1f} %"

    return note


def _slowed_note(name: str) -> Callable[[Mapping[str, Against]], str]:
    return lambda _: f"jobs slower than under {name} by over 1 %"


def _slowed_mean_note(name: str) -> Callable[[Mapping[str, Against]], str]:
    def note(against: Mapping[str, Against]) -> str:
        worst = over_seeds(against[name].ours, lambda pair: pair.slowed.worst).high
        return f"by how much those are slower than under {name}, in the mean (no such job: 0); at worst {worst:.1f} %"

    return note

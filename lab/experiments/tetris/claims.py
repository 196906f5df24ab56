"""The paper's main numbers (Tetris, 5.2 and 5.3.1), by the ids of our rows, and how ours are found."""

import math
from collections.abc import Callable, Mapping

from lab.experiments.seeds import Seeds
from lab.experiments.tetris.comparison import Against, PaperClaim
from lab.experiments.tetris.gains import RunPair, job_time_share, makespan_share, over_seeds

_SLOWED = (
    "jobs slower than under {name} by over 1 %; they by {mean:.1f} % in the mean, {worst:.1f} % at worst; {others}"
)


def suite_claims() -> list[PaperClaim]:
    """Return what the paper says of its deployment (figure 4; 5.1, highlights)."""
    return [
        PaperClaim("suite.makespan_vs_capacity", "capacity", _each(_makespan), 29.0, _most("capacity")),
        PaperClaim("suite.makespan_vs_drf", "drf", _each(_makespan), 27.5, _most("drf")),
        PaperClaim("suite.makespan_vs_exact_drf", "exact drf", _each(_makespan), None, _most("exact drf")),
        PaperClaim("suite.median_job_time_vs_drf", "drf", _each(_median), 30.0, _other_medians("drf")),
        PaperClaim("suite.median_job_time_vs_capacity", "capacity", _each(_median), 30.0, _other_medians("capacity")),
        PaperClaim(
            "suite.median_job_time_vs_exact_drf", "exact drf", _each(_median), None, _other_medians("exact drf")
        ),
        PaperClaim("suite.upper_bound_share", "fair", _share, 80.0, _makespan_share("fair")),
        PaperClaim("suite.slowed_jobs", "drf", _each(_slowed), 6.0, _slowed_note("drf")),
    ]


def facebook_claims() -> list[PaperClaim]:
    """Return what the paper says of the Facebook trace (5.3.1)."""
    return [
        PaperClaim("facebook.mean_job_time_vs_fair", "fair", _each(_mean), 40.0, _other_means("fair")),
        PaperClaim("facebook.mean_job_time_vs_drf", "drf", _each(_mean), 35.0, _other_means("drf")),
        PaperClaim("facebook.mean_job_time_vs_exact_drf", "exact drf", _each(_mean), None, _other_means("exact drf")),
        PaperClaim("facebook.makespan_vs_fair", "fair", _each(_makespan), 33.0, _most("fair")),
        PaperClaim("facebook.makespan_vs_drf", "drf", _each(_makespan), 24.0, _most("drf")),
        PaperClaim("facebook.makespan_vs_exact_drf", "exact drf", _each(_makespan), None, _most("exact drf")),
        PaperClaim("facebook.upper_bound_share", "fair", _share, 81.0, _makespan_share("fair")),
        PaperClaim("facebook.slowed_jobs", "fair", _each(_slowed), 6.0, _slowed_note("fair")),
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


def _share(against: Against) -> Seeds:
    return job_time_share(against.ours, against.bound)


def _most(name: str) -> Callable[[Mapping[str, Against]], str]:
    def note(against: Mapping[str, Against]) -> str:
        most = over_seeds(against[name].ours, lambda pair: pair.most_makespan).mean
        return f"no scheduler could have more than {most:.1f} %: the scarcest resource is busy so long"

    return note


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
    def note(against: Mapping[str, Against]) -> str:
        others = ", ".join(
            f"{over_seeds(gains.ours, _slowed).mean:.1f} % against {other}"
            for other, gains in against.items()
            if other != name
        )
        return _SLOWED.format(
            name=name,
            mean=over_seeds(against[name].ours, lambda pair: pair.slowed.mean).mean,
            worst=over_seeds(against[name].ours, lambda pair: pair.slowed.worst).high,
            others=others,
        )

    return note

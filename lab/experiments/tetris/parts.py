"""Tetris's evaluation (5) as parts: what is varied, and what the paper says of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from extender.planner import Policy
from extender.policy.alignment import TASK_RULES
from lab.experiments.fit.published import TABLE_3, TABLE_6
from lab.experiments.running import Part
from lab.experiments.tetris.claims import facebook_claims, suite_claims
from lab.experiments.tetris.comparison import CAPACITY, DRF, EXACT_DRF, FAIR, OURS, PolicyComparison
from lab.experiments.tetris.runs import Setup, TetrisContender
from lab.experiments.tetris.scales import TetrisScale
from lab.experiments.tetris.sweeps import Published, Sweep, Variant
from lab.sim.workloads.parameters import variants

_BASELINES = {"fair": FAIR, "drf": DRF}
_SUITE_BASELINES = {"capacity": CAPACITY, "drf": DRF}
_LOSS = 1.0
"""The main comparisons run with all that is published of what contention wastes, and without beside."""
_MAKESPAN_AT_START = "Job time with the trace's arrivals, makespan with all jobs at the start, as in the paper (5.3.1)."
_SHARE_NOTE = "upper_bound_share: 100 x (our gain over slot-fair) / (the gain of the simple upper bound, 2.2.3)."
_TABLE_NOTE = (
    "Seconds; slow-down: how many times as long as at their peaks tasks take. Over-allocated: the part of machines and "
    "time in which more is wanted than there is, of the dimension where that is most frequent. Last table: how "
    "probable it is that a machine's load is above that, as in the paper's table 6."
)


def parts(scale: TetrisScale, seeds: Sequence[int], traces: Path) -> list[Part]:
    """Return the parts of the experiment at this scale, over these seeds."""
    few = seeds[: scale.sweep_seeds]
    at = {
        name: replace(setup, traces=traces)
        for name, setup in (
            ("suite", scale.suite),
            ("facebook", scale.facebook),
            ("small suite", scale.small_suite),
            ("small facebook", scale.small_facebook),
        )
    }
    facebook, suite, knobs = at["small facebook"], at["small suite"], scale.knobs
    return [
        _suite(at["suite"], seeds),
        _facebook(at["facebook"], seeds),
        _ablations(facebook, few),
        _heuristics(facebook, few),
        _fairness(facebook, few, knobs.fairness),
        _barrier(facebook, few, knobs.barrier),
        _penalty(facebook, few, knobs.penalty),
        _eps(facebook, few, knobs.srtf),
        _load(facebook, few, scale.loads),
        _tail(suite, few, knobs.tail),
        _sharing(suite, few),
        _matching(suite, few),
        _loss(suite, few, knobs.loss),
        _ranges(suite, few[:1], "suite", _SUITE_BASELINES, knobs.ranges),
        _ranges(facebook, few[:1], "facebook", _BASELINES, knobs.ranges),
    ]


def _suite(setup: Setup, seeds: Sequence[int]) -> PolicyComparison:
    return PolicyComparison(
        name="suite",
        title="The deployment suite (5.1, 5.2)",
        about=f"{setup.workload} on {setup.machines}, seeds {seeds[0]} to {seeds[-1]}.",
        setup=_with_loss(setup),
        beside=setup,
        cells=TABLE_6,
        baselines={"capacity": CAPACITY, "fair": FAIR, "drf": DRF, "exact drf": EXACT_DRF},
        claims=suite_claims(),
        seeds=seeds,
        notes=(_SHARE_NOTE, _TABLE_NOTE),
    )


def _facebook(setup: Setup, seeds: Sequence[int]) -> PolicyComparison:
    return PolicyComparison(
        name="facebook",
        title="The Facebook-like trace (5.3.1)",
        about=f"{setup.workload} on {setup.machines}, seeds {seeds[0]} to {seeds[-1]}. {_MAKESPAN_AT_START}",
        setup=_with_loss(setup),
        beside=setup,
        cells=TABLE_3,
        baselines={"fair": FAIR, "drf": DRF, "exact drf": EXACT_DRF},
        claims=facebook_claims(),
        seeds=seeds,
        notes=(_SHARE_NOTE, _TABLE_NOTE),
    )


def _with_loss(setup: Setup) -> Setup:
    return replace(setup, settings=replace(setup.settings, loss=_LOSS))


def _ablations(setup: Setup, seeds: Sequence[int]) -> Sweep:
    return Sweep(
        name="ablation",
        title="Parts of the policy alone (5.3.1)",
        about=_where(setup, seeds),
        variants=[
            Variant("all", OURS, setup, paper=Published(40, 35, 33, 24)),
            Variant("paper", TetrisContender("paper"), setup, paper=Published(40, 35, 33, 24)),
            Variant("srtf", TetrisContender("srtf"), setup, paper=Published(27, 26)),
            Variant("packing", TetrisContender("packing"), setup, paper=Published(31, 28, 41, 29)),
            Variant("cpu-memory", TetrisContender("cpu-memory"), setup, paper=Published(15, 13)),
        ],
        baselines=_BASELINES,
        seeds=seeds,
        rows=True,
    )


def _heuristics(setup: Setup, seeds: Sequence[int]) -> Sweep:
    paper = {
        "dot": Published(40, None, 41),
        "l2-norm-diff": Published(30, None, 40),
        "l2-norm-ratio": Published(33, None, 36),
        "ffd-prod": Published(25, None, 24),
        "ffd-sum": Published(26, None, 31),
    }
    return Sweep(
        name="heuristic",
        title="Alignment heuristics (table 8)",
        about=_where(setup, seeds),
        variants=[Variant(rule, _with(rule=rule), setup, paper=paper.get(rule, Published())) for rule in TASK_RULES],
        baselines=_BASELINES,
        seeds=seeds,
        notes=("dot is what the paper calls cosine similarity: demand and what is free, in parts of the machine.",),
        rows=True,
    )


def _fairness(setup: Setup, seeds: Sequence[int], values: Sequence[float]) -> Sweep:
    return Sweep(
        name="fairness",
        title="The fairness knob f (figures 8 and 9)",
        about=_where(setup, seeds),
        variants=_over("fairness", values, setup),
        baselines=_BASELINES,
        seeds=seeds,
        axis="f",
        notes=(
            "The paper: towards 1 still 23 % less job time and 10 % less makespan; 0.25 within 10 % of the best; at 0 "
            "up to 15 % of the jobs are slower, from 0.25 on about 5 %.",
        ),
        slowed_plot=True,
    )


def _barrier(setup: Setup, seeds: Sequence[int], values: Sequence[float]) -> Sweep:
    return Sweep(
        name="barrier",
        title="The barrier knob b (figure 10)",
        about=_where(setup, seeds),
        variants=_over("barrier", values, setup),
        baselines=_BASELINES,
        seeds=seeds,
        axis="b",
        notes=(
            "The paper: below 0.75 worse than none (1); at 0.9 the makespan gains 30 % over DRF, at 1 it gains 22 %.",
        ),
    )


def _penalty(setup: Setup, seeds: Sequence[int], values: Sequence[float]) -> Sweep:
    return Sweep(
        name="penalty",
        title="The remote penalty (5.3.3)",
        about=_where(setup, seeds),
        variants=_over("remote_penalty", values, setup),
        baselines=_BASELINES,
        seeds=seeds,
        axis="remote penalty",
        notes=("The paper: little changes between 0.06 and 0.15, beyond them gains drop moderately.",),
    )


def _eps(setup: Setup, seeds: Sequence[int], values: Sequence[float]) -> Sweep:
    return Sweep(
        name="eps",
        title="Remaining work against alignment (5.3.3)",
        about=_where(setup, seeds),
        variants=_over("srtf", values, setup),
        baselines=_BASELINES,
        seeds=seeds,
        axis="m",
        notes=(
            "The paper: at 0 about 10 % less gain in job time; no more gain beyond 1.5; makespan gains 8 % at 0.5.",
        ),
    )


def _load(setup: Setup, seeds: Sequence[int], loads: Sequence[tuple[float, str]]) -> Sweep:
    return Sweep(
        name="load",
        title="Load (figure 11)",
        about=f"{_where(setup, seeds)} Twice the load is half the machines.",
        variants=[Variant(f"{load:g}", OURS, replace(setup, machines=machines), x=load) for load, machines in loads],
        baselines=_BASELINES,
        seeds=seeds,
        axis="load, times the usual",
        notes=("The paper: at four times the load over 60 % less makespan and over 50 % less job time.",),
    )


def _tail(setup: Setup, seeds: Sequence[int], values: Sequence[float]) -> Sweep:
    return Sweep(
        name="tail",
        title="Jobs that decide when everything is done (ours)",
        about=_where(setup, seeds),
        variants=[Variant(f"{value:g}", _with(tail=value), setup) for value in values],
        baselines=_SUITE_BASELINES,
        seeds=seeds,
        notes=(
            "A job goes before others, but for small ones, if its longest chain of stages takes at least this part of "
            "the time for which all that is left keeps the cluster busy; inf is the paper's own policy.",
        ),
    )


def _sharing(setup: Setup, seeds: Sequence[int]) -> Sweep:
    return Sweep(
        name="sharing",
        title="Whose turn it is",
        about=_where(setup, seeds),
        variants=[
            *(Variant(unit, _with(sharing=unit), setup) for unit in ("drf", "slots")),
            *(Variant(f"kappa {kappa:g}", _with(kappa=kappa, fairness=0.0), setup) for kappa in (0.05, 0.1, 0.2)),
        ],
        seeds=seeds,
        baselines=_SUITE_BASELINES,
        notes=(
            "drf and slots with the fairness knob (Tetris, 3.4); kappa: without it, by Graphene's counters (its 5.1).",
        ),
    )


def _matching(setup: Setup, seeds: Sequence[int]) -> Sweep:
    return Sweep(
        name="matching",
        title="One machine after the other, the best pair of all, or sets of tasks",
        about=_where(setup, seeds),
        variants=[Variant(order, _with(matching=order), setup) for order in ("machine", "pair", "bundle")],
        seeds=seeds,
        baselines=_SUITE_BASELINES,
    )


def _loss(setup: Setup, seeds: Sequence[int], values: Sequence[float]) -> Sweep:
    return Sweep(
        name="loss",
        title="What contention wastes (2.1: incast, seeks)",
        about=_where(setup, seeds),
        variants=[
            Variant(f"{loss:g}", OURS, replace(setup, settings=replace(setup.settings, loss=loss)), x=loss)
            for loss in values
        ],
        seeds=seeds,
        axis="loss",
        notes=(
            "0: contention only shares a disk or a network. 1: at a load of 1 seeks take 11 % of a disk; at a load of "
            "2.2 a disk keeps 78 % and a link two thirds.",
        ),
        baselines=_SUITE_BASELINES,
    )


def _ranges(
    setup: Setup, seeds: Sequence[int], group: str, baselines: Mapping[str, TetrisContender], most: int
) -> Sweep:
    fixed = {f"{group}.{option}" for option in ("jobs", "load") if f"{option}=" in setup.workload}
    changed = [name for name, _ in variants(group) if name.partition(" ")[0] not in fixed][:most]
    return Sweep(
        name=f"{group}-ranges",
        title=f"What is not published ({group}): each value at both ends of its range",
        about=_where(setup, seeds),
        variants=[Variant("as it is", OURS, setup)]
        + [Variant(name.partition(".")[2], OURS, replace(setup, parameters=name)) for name in changed],
        seeds=seeds,
        baselines=baselines,
    )


def _over(field: str, values: Sequence[float], setup: Setup) -> list[Variant]:
    return [Variant(f"{value:g}", _with(**{field: value}), setup, x=value) for value in values]


def _with(**tuning: object) -> TetrisContender:
    """Return our planner with this tuning; the default tuning is the usual planner, so that its runs are shared."""
    default = Policy()
    changed = {key: value for key, value in tuning.items() if getattr(default, key) != value}
    return TetrisContender(OURS.policy, tuple(sorted(changed.items())))


def _where(setup: Setup, seeds: Sequence[int]) -> str:
    start = f" {_MAKESPAN_AT_START}" if setup.makespan_at_start else ""
    return f"{setup.workload} on {setup.machines}, seeds {seeds[0]} to {seeds[-1]}.{start}"

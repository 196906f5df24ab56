"""The list of the parts of the Graphene experiments, and how large they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.experiments.graphene import contention, many, single, sweeps, tpch
from lab.experiments.graphene.contention import Contention, ContentionRun
from lab.experiments.graphene.many import JobsRun, Many, ManyRun
from lab.experiments.graphene.single import MeasuredDags, Single, SingleRun
from lab.experiments.graphene.sweeps import SweepRun, Sweeps
from lab.experiments.graphene.tpch import JobTimes, Tpch, TpchRun
from lab.experiments.running import Part
from lab.sim.parallel import Tell

Run = SingleRun | ManyRun | SweepRun | ContentionRun | TpchRun
Outcome = MeasuredDags | JobsRun | JobTimes


@dataclass(frozen=True, slots=True)
class GrapheneScale:
    """How large everything is: seeds, DAGs for each and their effort, jobs on one cluster, sequences of queries.

    An effort of None is the usual one of each DAG.
    """

    about: str
    seeds: int
    dags: int
    effort: int | None
    jobs: int
    sequences: int


FULL = GrapheneScale(
    "A hundred DAGs for each seed, and forty on one cluster; five sequences of queries.", 5, 100, None, 40, 5
)
QUICK = GrapheneScale(
    "A small form, which shows that everything works; its numbers are not to be quoted.", 1, 5, 1_000, 2, 1
)


def parts(scale: GrapheneScale, seeds: Sequence[int], traces: Path) -> list[Part]:
    """Return the parts at this scale, over these seeds."""
    return [
        Single(scale.dags, seeds, scale.effort),
        Many(scale.jobs, seeds),
        Sweeps(scale.jobs, seeds),
        Contention(scale.jobs // 2, seeds),
        Tpch(scale.sequences, traces),
    ]


def perform(run: Run, tell: Tell) -> Outcome:
    """Return the outcome of a run. Raises SpecError."""
    if isinstance(run, ManyRun):
        return many.perform(run, tell)
    if isinstance(run, SweepRun):
        return sweeps.perform(run, tell)
    if isinstance(run, ContentionRun):
        return contention.perform(run, tell)
    return single.perform(run, tell) if isinstance(run, SingleRun) else tpch.perform(run, tell)

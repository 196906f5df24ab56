"""The list of the parts of the Graphene experiments, and how large they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from lab.experiments import running
from lab.experiments.graphene import contention, many, single, sweeps, tpch
from lab.experiments.graphene.contention import Contention, ContentionRun
from lab.experiments.graphene.many import JobsRun, Many, ManyRun
from lab.experiments.graphene.single import MeasuredDags, Single, SingleRun
from lab.experiments.graphene.sweeps import SweepRun, Sweeps
from lab.experiments.graphene.tpch import JobTimes, Tpch, TpchRun
from lab.experiments.sections import Section, Skipped
from lab.sim.parallel import Show, Tell

Part = Single | Many | Sweeps | Contention | Tpch
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


def runs_of(parts: Sequence[Part]) -> dict[str, Run]:
    """Return the runs that these parts need by their names, each once."""
    return {run.name: run for part in parts for run in part.runs()}


def run_parts(parts: Sequence[Part], *, processes: int, show: Show) -> tuple[list[Section], list[Skipped]]:
    """Return the sections of the parts, and the parts that are skipped because one of their runs failed."""
    return running.run_parts(parts, runs_of, _perform, _section, processes=processes, show=show)


def _perform(run: Run, tell: Tell) -> Outcome:
    if isinstance(run, ManyRun):
        return many.perform(run, tell)
    if isinstance(run, SweepRun):
        return sweeps.perform(run, tell)
    if isinstance(run, ContentionRun):
        return contention.perform(run, tell)
    return single.perform(run, tell) if isinstance(run, SingleRun) else tpch.perform(run, tell)


def _section(part: Part, outcomes: Mapping[Run, Outcome]) -> Section:
    if isinstance(part, Single):
        return part.make(cast("Mapping[SingleRun, MeasuredDags]", outcomes))
    if isinstance(part, Sweeps):
        return part.make(cast("Mapping[SweepRun, JobsRun]", outcomes))
    if isinstance(part, Contention):
        return part.make(cast("Mapping[ContentionRun, JobsRun]", outcomes))
    if isinstance(part, Many):
        return part.make(cast("Mapping[ManyRun, JobsRun]", outcomes))
    return part.make(cast("Mapping[TpchRun, JobTimes]", outcomes))

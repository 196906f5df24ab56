"""TPC-H queries that arrive on few executors: mean job times by simple rules and by ours, over published sequences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.experiments.graphene.rules import CONTENDERS, fluid_bound
from lab.experiments.sections import Figure, Section
from lab.experiments.seeds import Seeds
from lab.sim.dag.executor_jobs import EXECUTORS
from lab.sim.dag.executors import Executors
from lab.sim.dag.tpch import sequence
from lab.sim.parallel import Tell

_KNOWN = {"fifo": 1489.0, "fair": 1148.0, "least_work": 566.0}
"""Mean job times measured elsewhere on the same sequences: what the model is held against."""
_KNOWN_BOUND = 396.0


@dataclass(frozen=True, slots=True)
class TpchRun:
    """One of the published sequences, by its number."""

    number: int
    traces: Path

    @property
    def name(self) -> str:
        """What it is called while it runs."""
        return f"TPC-H, sequence {self.number}"


@dataclass(frozen=True, slots=True)
class JobTimes:
    """Mean job times by contender, the least that is possible, and how often executors changed jobs."""

    seconds: Mapping[str, float]
    bound: float
    moves: Mapping[str, int]


def perform(run: TpchRun, tell: Tell) -> JobTimes:
    """Run the sequence by every rule. Raises SpecError where the trace is missing."""
    arrivals = sequence(run.traces, run.number, EXECUTORS)
    seconds, moves = {}, {}
    for done, (name, contender) in enumerate(CONTENDERS.items(), 1):
        executors = Executors(arrivals, EXECUTORS)
        seconds[name] = float(executors.run(contender.rule, stays=contender.stays).mean())
        moves[name] = executors.moves
        tell(done, len(CONTENDERS))
    return JobTimes(seconds, fluid_bound(Executors(arrivals, EXECUTORS)), moves)


@dataclass(frozen=True, slots=True)
class Tpch:
    """The part: so many of the sequences, from the first on. They are given, so seeds change nothing."""

    sequences: int
    traces: Path
    name: str = "tpch"

    def runs(self) -> list[TpchRun]:
        """Return its runs."""
        return [TpchRun(number, self.traces) for number in range(1, self.sequences + 1)]

    def section(self, outcomes: Mapping[TpchRun, JobTimes]) -> Section:
        """Return the section."""
        times = [outcomes[run] for run in self.runs()]
        bound = Seeds(tuple(each.bound for each in times))
        return Section(
            title=f"TPC-H queries on {EXECUTORS} executors",
            about="Mean job times over the published sequences of 50 queries each.",
            figures=[
                *(_figure(name, times, bound) for name in CONTENDERS),
                Figure(
                    "graphene.tpch.bound",
                    bound,
                    None,
                    f"no rule can pass it; measured elsewhere: {_KNOWN_BOUND:,.0f}",
                    "s",
                ),
            ],
            notes=["An executor takes 2 s to change jobs; tasks take their mean, by wave and the job's executors."],
        )


def _figure(name: str, times: Sequence[JobTimes], bound: Seeds) -> Figure:
    ours = Seeds(tuple(each.seconds[name] for each in times))
    moves = sum(each.moves[name] for each in times) / len(times)
    known = f"; measured elsewhere: {_KNOWN[name]:,.0f}" if name in _KNOWN else ""
    return Figure(
        f"graphene.tpch.{name}",
        ours,
        None,
        f"{CONTENDERS[name].words}, {moves:,.0f} moves{known}",
        "s",
        attainable=bound,
    )

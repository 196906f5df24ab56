"""Both runs of one workload, and everything that is told about them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab.controlplane.processes import Load
from lab.demo import plots, report
from lab.demo.figures import course, figures, job_ends
from lab.demo.rows import FigureRow, rows
from lab.demo.run import DOVETAIL, STOCK, RunOutcome, Show, cluster_of, run
from lab.demo.shares import shares
from lab.demo.workload import KINDS, SHAPES, DemoWorkload

_COLOURS = {STOCK: "#c8553d", DOVETAIL: "#1f6fb2"}


@dataclass(frozen=True)
class Comparison:
    """Two runs of one seed, the stock scheduler's first: what was run, what is drawn, and the figures side by side.

    `loads`: how busy the machine was in each.
    """

    seed: int
    about: str
    stock: plots.DrawnRun
    dovetail: plots.DrawnRun
    rows: list[FigureRow]
    loads: Sequence[Load]

    @property
    def notes(self) -> list[str]:
        """Return the paragraphs below the rows."""
        slowed = report.slowed(self.stock.figures.slowdown_mean, self.dovetail.figures.slowdown_mean)
        crowded = report.crowded(self.loads)
        return [*([crowded] if crowded else []), report.MEASURE, report.QUEUED, slowed, report.SHARING, report.EQUAL]

    def write_picture(self, path: Path) -> None:
        """Write the main plots as a picture."""
        plots.picture((self.stock, self.dovetail), path)


def run_by_turns(
    programs: Mapping[str, Path], workloads: Mapping[int, DemoWorkload], show: Callable[[str], Show]
) -> list[Comparison]:
    """Run the workload of each seed by both, on one control plane; who goes first changes from seed to seed."""
    comparisons = []
    with cluster_of(programs, next(iter(workloads.values()))) as control_plane:
        for place, (seed, workload) in enumerate(workloads.items()):
            part = f"seed {seed}: " if len(workloads) > 1 else ""
            turns = (STOCK, DOVETAIL) if place % 2 == 0 else (DOVETAIL, STOCK)
            outcomes = {
                contender: run(control_plane, workload, contender, show(part + contender.name)) for contender in turns
            }
            comparisons.append(compare(workload, outcomes[STOCK], outcomes[DOVETAIL], seed=seed))
    return comparisons


def compare(workload: DemoWorkload, stock: RunOutcome, dovetail: RunOutcome, *, seed: int) -> Comparison:
    """Return what the two runs came to."""
    ours, theirs = _drawn(workload, dovetail), _drawn(workload, stock)
    told, loads = rows(theirs.figures, ours.figures), (stock.load, dovetail.load)
    return Comparison(seed, about(workload, stock.kubernetes, seed), theirs, ours, told, loads)


def about(workload: DemoWorkload, kubernetes: str, seed: int) -> str:
    """Return in a sentence or two what was run."""
    shapes = [machine.shape for machine in workload.machines]
    nodes = ", ".join(
        f"{shapes.count(shape)} with {shape.cores} cores, {shape.memory_gb} GB, {shape.disks} disks, {shape.gbps} Gbps"
        for shape in SHAPES
        if shape in shapes
    )
    kinds = [task.kind for task in workload.tasks]
    pods = ", ".join(f"{kinds.count(kind.name)} {kind.name}" for kind in KINDS)
    work = f"{workload.work.min():.1f} to {workload.work.max():.1f} s of work each"
    return (
        f"Kubernetes {kubernetes}; {len(shapes)} nodes: {nodes}. {len(kinds)} pods of {workload.jobs.max() + 1} jobs, "
        f"submitted in one burst: {pods}; {work} (seed {seed})."
    )


def _drawn(workload: DemoWorkload, outcome: RunOutcome) -> plots.DrawnRun:
    went = course(workload, outcome.times)
    return plots.DrawnRun(
        name=outcome.contender.name,
        colour=_COLOURS[outcome.contender],
        went=went,
        shares=shares(workload, outcome.times),
        figures=figures(workload, outcome.times, went),
        job_ends=job_ends(workload, outcome.times),
        pod_ends=np.sort(outcome.times.ended),
    )

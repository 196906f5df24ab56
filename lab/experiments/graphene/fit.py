"""How much of network and disk the tasks of drawn DAGs take: fitted to the paper's table 7, by simple orders alone.

    python -m lab.experiments.graphene.fit

tries some means and prints, of each, the table beside the paper's. The best is `lab.sim.workloads.dags.MEANS`. Our own
orders are not run. Takes some eight minutes of one core.
"""

from collections.abc import Sequence

import click
import numpy as np

from extender.arrays import Floats
from lab.experiments.graphene.table7 import PAPER, beyond, rows, share, with_paper, within
from lab.sim.workloads.dags import MEANS, draw

SEEDS = (300, 301, 302)
TRIED = (0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.12)
_DAGS = 50
_LOAD = 1.0


def table(mean: float, seeds: Sequence[int], dags: int) -> dict[str, Floats]:
    """Return table 7 of drawn DAGs whose tasks take so much of a machine's network, and of its disks."""
    spans: list[dict[str, float]] = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        for _ in range(dags):
            dag = draw(random, (*MEANS[:2], mean, mean)).dag
            machines = share(dag, _LOAD)
            spans.append(within(dag, machines, seed) | beyond(dag, machines, seed))
    return rows({name: np.array([each[name] for each in spans]) for name in spans[0]})


def miss(drawn: dict[str, Floats]) -> float:
    """Return by how many points the cells miss the paper's, in the mean."""
    return float(np.mean([np.abs(drawn[name] - np.array(cells)) for name, cells in PAPER.items()]))


@click.command()
def main() -> None:
    """Print the table of each mean that is tried."""
    for mean in TRIED:
        drawn = table(mean, SEEDS, _DAGS)
        click.echo(f"{mean:g} of network and of disk: {miss(drawn):.2f} points off in the mean")
        for name, cells in PAPER.items():
            click.echo(f"  {name:<30}" + "".join(f"{cell:>12}" for cell in with_paper(drawn[name], cells)))


if __name__ == "__main__":
    main()

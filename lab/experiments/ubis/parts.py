"""The list of the parts of the UBIS paper's evaluation (5)."""

from collections.abc import Sequence

from lab.experiments.ubis.auto import auto
from lab.experiments.ubis.busy import busy
from lab.experiments.ubis.constraints import constraints
from lab.experiments.ubis.groups import UbisPart, UbisScale
from lab.experiments.ubis.pipelines import pipelines, scrapes, variants
from lab.experiments.ubis.sensitivity import sleep

_FEW = 2
"""What varies one thing at a time is over so many seeds at most."""


def parts(scale: UbisScale, seeds: Sequence[int]) -> list[UbisPart]:
    """Return the parts of the experiment at this scale, over these seeds."""
    few = seeds[:_FEW]
    return [
        sleep(scale, seeds),
        pipelines(scale, seeds),
        auto(scale, few),
        constraints(scale, few),
        busy(scale, few),
        scrapes(scale, few),
        variants(scale, few),
    ]

"""The list of the parts of the UBIS paper's evaluation (5)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lab.experiments.ubis.alibaba import alibaba
from lab.experiments.ubis.auto import auto
from lab.experiments.ubis.busy import busy
from lab.experiments.ubis.constraints import constraints
from lab.experiments.ubis.groups import UbisPart, UbisScale
from lab.experiments.ubis.pipelines import pipelines, scrapes, variants
from lab.experiments.ubis.pressure import pressure
from lab.experiments.ubis.sensitivity import sleep

_FEW = 2
"""What varies one thing at a time is over so many seeds at most."""


def parts(scale: UbisScale, seeds: Sequence[int], traces: Path) -> list[UbisPart]:
    """Return the parts of the experiment at this scale, over these seeds; `traces` is the folder of the traces."""
    scale = replace(scale, alibaba=replace(scale.alibaba, traces=traces))
    few = seeds[:_FEW]
    return [
        sleep(scale, seeds),
        pipelines(scale, seeds),
        auto(scale, few),
        constraints(scale, few),
        busy(scale, few),
        scrapes(scale, few),
        variants(scale, few),
        pressure(scale, few),
        alibaba(scale, seeds, few),
    ]

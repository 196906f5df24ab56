"""The list of the parts of the UBIS paper's evaluation (5)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lab.experiments.ubis.alibaba import alibaba
from lab.experiments.ubis.auto import auto
from lab.experiments.ubis.busy import busy
from lab.experiments.ubis.constraints import constraints
from lab.experiments.ubis.groups import UbisPart, UbisScale
from lab.experiments.ubis.pipelines import pipelines
from lab.experiments.ubis.pressure import pressure
from lab.experiments.ubis.sensitivity import sleep
from lab.experiments.ubis.varied import fewer_pipelines, scrapes, variants

_FEW = 2
"""What varies one thing at a time is over so many seeds at most."""


def parts(scale: UbisScale, seeds: Sequence[int], traces: Path) -> list[UbisPart]:
    """Return the parts of the experiment at this scale, over these seeds; `traces` is the folder of the traces."""
    scale = replace(scale, alibaba=replace(scale.alibaba, traces=traces))
    few = seeds[:_FEW]
    return [
        sleep(scale, seeds),
        pipelines(scale, seeds),
        fewer_pipelines(scale, few),
        auto(scale, few),
        constraints(scale, seeds),
        busy(scale, seeds),
        scrapes(scale, few),
        variants(scale, few),
        pressure(scale, few),
        alibaba(scale, seeds, few),
    ]

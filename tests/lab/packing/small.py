"""Small clusters for the tests of packing, drawn or written out."""

import numpy as np

from extender.cluster.eligibility import Constraints
from extender.cluster.model import Node
from lab.packing.model import problem_of
from lab.packing.task import PackingTask

GIB = 2.0**30
GPU = "a.b/gpu"
PARTS_OF_GPU = "alibabacloud.com/gpu-milli"


def node(name, cpu=4000, gib=8, gpus=0, **others):
    return Node(name, _amounts(cpu, gib, gpus), **others)


def task(cpu=1000, gib=1, gpus=0, **others):
    return PackingTask(_amounts(cpu, gib, gpus), **others)


def _amounts(cpu, gib, gpus):
    return {"cpu": float(cpu), "memory": gib * GIB, **({GPU: float(gpus)} if gpus else {})}


def drawn(seed, machines=12, classes=8, most=6, plain=False, gpus=False):
    """Return a problem of unequal machines and constrained classes; with `plain`, without constraints.

    With `gpus` two machines of three have some, and two classes of three ask for them.
    """
    draw = np.random.default_rng(seed)
    some = np.random.default_rng([seed, 1]).choice((0, 1, 4), machines) if gpus else np.zeros(machines)
    asked = np.random.default_rng([seed, 2]).choice((0, 1, 2), classes) if gpus else np.zeros(classes)
    nodes = [
        node(
            f"n{row:02}",
            cpu=1000 * int(draw.integers(2, 9)),
            gib=int(draw.integers(2, 17)),
            gpus=int(some[row]),
            labels={"zone": "ab"[row % 2]},
        )
        for row in range(machines)
    ]
    tasks = []
    for row in range(classes):
        one = task(
            cpu=250 * int(draw.integers(1, 12)),
            gib=int(draw.integers(1, 6)),
            gpus=int(asked[row]),
            arrived=float(row),
            job=f"j{row}",
            constraints=Constraints(selector=(("zone", "a"),)) if not plain and draw.random() < 0.3 else Constraints(),
            group=f"g{row // 2}" if not plain and draw.random() < 0.4 else "",
            at_most=int(draw.integers(1, 3)),
        )
        tasks += [one] * int(draw.integers(1, most + 1))
    return problem_of(nodes, tasks)


def everywhere(problem):
    return np.arange(problem.machines)

"""A job small enough to check by hand: two maps and a reduce on three machines in two racks.

Machines have 4000 millicores, 64 bytes of memory, and 100 in each disk and network dimension. The first map's block is
on machine 0, the second's on machine 1. Maps read 40 a second, and take 10 and 20 s.
"""

import numpy as np

from extender.cluster.model import HOLD_GATE, Pod
from lab.experiments.cluster.pod_run import PodRun
from lab.experiments.cluster.pods import Pods, node_names
from lab.sim.engine.world import World
from lab.sim.workloads.workload import BLOCKS, LOCAL, SHUFFLE, Job, Machines, Stage, Workload

MACHINES = Machines(
    "three", np.tile([4000.0, 64, 100, 100, 100, 100], (3, 1)), copies=1, racks=np.array([0, 0, 1], dtype=np.intp)
)
ZERO = 100.0
"""When the workload begins, on the clock of tests."""


def stage(name, durations, *, write=0.0, reading=0.0, source=LOCAL, parents=(), copies=None):
    demand = np.array([1000.0, 8, 0, write, 0, 0])
    return Stage(
        name, demand, reading, float(np.mean(durations)), np.array(durations, dtype=float), parents, source, copies
    )


MAP_AND_REDUCE = Workload(
    "small",
    [
        Job(
            "j",
            0.0,
            [
                stage("map", [10, 20], reading=40.0, source=BLOCKS, copies=np.array([[0], [1]], dtype=np.intp)),
                stage("reduce1", [5], reading=30.0, source=SHUFFLE, parents=(0,)),
            ],
            queue="research",
        )
    ],
)


def world(jobs=MAP_AND_REDUCE):
    return World(jobs, MACHINES, seed=1, begin=0.0, loss=0.0, sample_seconds=1.0, points=100)


def begun_run(jobs=MAP_AND_REDUCE):
    """Return a run on pods that has begun, and the list of the batches of pods that it creates."""
    small_world, batches = world(jobs), []
    nodes = node_names(MACHINES)
    pods = Pods(small_world.table, small_world.backlog.copies, nodes)
    pod_run = PodRun(
        small_world,
        pods,
        nodes,
        MACHINES.racks,
        lambda rows: batches.append([pods.names[row] for row in rows]),
    )
    pod_run.begin(ZERO)
    return pod_run, batches


def pod(name, *, node=None, runs=False, ended=False, held=False, uid="", failed=False):
    """Return a pod as the API server shows it."""
    return Pod(
        uid or f"uid-{name}",
        "default",
        name,
        {},
        f"node-00{node}" if node is not None else None,
        gates=(HOLD_GATE,) if held else (),
        started=1.0 if runs or ended else None,
        finished=ended or failed,
        failed=failed,
    )

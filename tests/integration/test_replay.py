"""A run of the stock scheduler on a real control plane is recorded, and replayed as it was."""

import subprocess
import sys

import numpy as np

from lab.controlplane import workload as cluster
from lab.demo.run import STOCK, run
from lab.demo.workload import DemoSize, generate
from lab.sim import runs
from lab.sim.engine.clock import SimulationSettings

SIZE = DemoSize(nodes=10, pods=120, work_seconds=(6.0, 14.0))
SEEDS = range(1, 11)
BEYOND = 1.25
"""What was is one draw, on a machine that may be busy: so far it may lie beyond all that were simulated."""


def times(file, policy, seed=1):
    """Return makespan and mean job time of the demo's jobs; the pods of its warm-up are others."""
    settings = SimulationSettings(heartbeat_seconds=0.0)
    replayed = runs.Run(f"recording:{file}", "recorded", policy, seed, settings=settings)
    jobs = [job for job in runs.perform(replayed, lambda _done, _total: None).jobs if "/job-" in job.name]
    assert sum(job.tasks for job in jobs) == SIZE.pods
    makespan = max(job.ended for job in jobs) - min(job.arrived for job in jobs)
    return makespan, sum(job.seconds for job in jobs) / len(jobs)


def test_a_recorded_run_is_replayed_as_it_was(control_plane, tmp_path, tell):
    # 1. Record a run of the stock scheduler.
    demo, file = generate(SIZE, seed=1), tmp_path / "recording"
    cluster.create_nodes(control_plane.client(), demo.node_manifests())
    command = [sys.executable, "-m", "extender", "record", f"--kubeconfig={control_plane.admin}", f"--append={file}"]
    process = subprocess.Popen(command)
    try:
        cluster.wait_until(lambda: file.exists() and b"checkpoint" in file.read_bytes(), 60, "a checkpoint")
        outcome = run(control_plane, demo, STOCK, lambda _ended, _running: None)
    finally:
        process.terminate()
        assert process.wait(60) == 0
    # 2. The replay ends when the machine room saw the last pod end, from the first pod on.
    was = np.array(times(file, "recorded"))
    room = float(outcome.times.ended.max())
    assert abs(was[0] / room - 1) < 0.1
    # 3. So does kube-scheduler, simulated, but for chance: ties, and who waits for whose disk.
    simulated = np.array([times(file, "kube-default", seed) for seed in SEEDS])
    gaps = 100 * (simulated.mean(axis=0) / was - 1)
    assert (simulated.min(axis=0) < was * BEYOND).all()
    assert (was < simulated.max(axis=0) * BEYOND).all()
    tell(f"makespan, job time: {was}; simulated {simulated.min(axis=0)} to {simulated.max(axis=0)}; mean {gaps} % off")

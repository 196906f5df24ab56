"""A run of the stock scheduler on a control plane of its own, recorded by `dovetail record`."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab.controlplane import builders, workload
from lab.controlplane.builders import Manifest
from lab.controlplane.rest import request
from lab.controlplane.running import ControlPlane
from lab.live.schedulers import add_stock

_JOB = "dovetail.dev/job"
_STARTING_SECONDS, _ENDING_SECONDS = 60.0, 60.0
_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ReplayCase:
    """Nodes, and `jobs` that arrive evenly over `arrivals` seconds, each of pods of one size and one duration.

    `pods` are at least and at most so many a job; `cores` of a pod; `seconds` that it runs. By default the cluster is
    kept full from the first seconds on, and jobs wait for one another.
    """

    nodes: int = 8
    cores_per_node: int = 8
    jobs: int = 90
    pods: tuple[int, int] = (3, 12)
    cores: tuple[int, int] = (1, 3)
    seconds: tuple[float, float] = (4.0, 16.0)
    arrivals: float = 150.0

    @property
    def limit_seconds(self) -> float:
        """After how long a run is an error."""
        return 60.0 + 8 * self.arrivals


@dataclass(frozen=True, slots=True)
class _Arrival:
    at: float
    manifests: Sequence[Manifest]


def record(programs: Mapping[str, Path], case: ReplayCase, seed: int, file: Path) -> int:
    """Run the case once, write its recording to the file, and return how many pods it has.

    Raises ControlPlaneError where that fails or takes too long.
    """
    arrivals = _arrivals(case, seed)
    count = sum(len(arrival.manifests) for arrival in arrivals)
    with ControlPlane(programs) as plane:
        client = plane.client()
        nodes = [builders.node(f"n{row}", cpu=case.cores_per_node, memory="64Gi") for row in range(case.nodes)]
        workload.create_nodes(client, nodes, ready=_STARTING_SECONDS)
        add_stock(plane)
        command = [sys.executable, "-m", "extender", "record", f"--kubeconfig={plane.admin}", f"--append={file}"]
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            workload.wait_until(lambda: _has_begun(file), _STARTING_SECONDS, "the recording to begin")
            begin = time.monotonic()
            for arrival in arrivals:
                time.sleep(max(arrival.at - (time.monotonic() - begin), 0.0))
                workload.create_pods(client, arrival.manifests)

            def ended() -> bool:
                unfinished = "status.phase!=Succeeded"
                waiting = request(client, "GET", workload.PODS, fieldSelector=unfinished, limit=1)
                return not waiting["items"]

            workload.wait_until(ended, case.limit_seconds, "all pods to end", every=_LOOK_SECONDS)
        finally:
            recorder.terminate()
            recorder.wait(_ENDING_SECONDS)
    return count


def _has_begun(file: Path) -> bool:
    return file.exists() and b"checkpoint" in file.read_bytes()


def _arrivals(case: ReplayCase, seed: int) -> list[_Arrival]:
    random = np.random.default_rng(seed)
    times = np.sort(random.uniform(0.0, case.arrivals, case.jobs))
    return [_Arrival(at, _pods(case, row, random)) for row, at in enumerate(times.tolist())]


def _pods(case: ReplayCase, row: int, random: np.random.Generator) -> list[Manifest]:
    """Return the pods of one job."""
    count = int(random.integers(case.pods[0], case.pods[1] + 1))
    cores = int(random.integers(case.cores[0], case.cores[1] + 1))
    seconds = float(random.uniform(*case.seconds))
    return [
        builders.pod(
            f"job-{row:03d}-{number:02d}",
            cpu=cores,
            memory="1Gi",
            duration=seconds,
            scheduler_name="default-scheduler",
            labels={_JOB: f"job-{row:03d}"},
        )
        for number in range(count)
    ]

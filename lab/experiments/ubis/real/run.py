"""One run: the whole scenario on a fresh control plane, and what was written down of it."""

import time
from collections.abc import Mapping
from pathlib import Path

from lab.experiments.ubis.real import audit, series
from lab.experiments.ubis.real.course import FinishedRun
from lab.experiments.ubis.real.kills import Kills
from lab.experiments.ubis.real.phases import play
from lab.experiments.ubis.real.plane import plane
from lab.experiments.ubis.real.scale import RealScale
from lab.experiments.ubis.real.stage import ExperimentCluster


def run(programs: Mapping[str, Path], scale: RealScale, seed: int) -> FinishedRun:
    """Play the scenario; the seed draws who is killed when. Raises ControlPlaneError where something never comes."""
    begun = time.time()
    with plane(programs) as running:
        kills = Kills(running.control_plane, scale.kill_seconds, seed)
        stage = ExperimentCluster(running, scale, kills, tuple(f"node-{number}" for number in range(scale.nodes)))
        stage.begin()
        with kills:
            play(stage)
        ended = {name: (count, *stage.job_counts(name)) for name, count in stage.completions.items()}
        with running.audit.open() as log:
            writes = list(audit.read(log))
        return FinishedRun(
            nodes=stage.nodes,
            spans=tuple(stage.spans),
            states=tuple(running.recording.states),
            holders=tuple(running.recording.holders),
            kills=tuple(kills.at),
            writes=writes,
            measured=series.read(running.prometheus_url, begun),
            jobs=ended,
            kubernetes=running.control_plane.version(),
        )

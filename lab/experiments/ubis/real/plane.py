"""The cluster of the scenario: a control plane with an audit log, Prometheus, and all of Dovetail, `control` twice."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import urllib3
import yaml

from extender.cluster.resources import DISK_READ
from lab.controlplane import monitoring, pins, ports
from lab.controlplane.component import Component, Launch
from lab.controlplane.configurations import dovetail_configuration
from lab.controlplane.front import Front
from lab.controlplane.launches import APISERVER, EXTENDER, KWOK
from lab.controlplane.running import ControlPlane
from lab.experiments.ubis.real.recording import Recording, use_of
from lab.experiments.ubis.real.scale import SCRAPE_SECONDS, settings
from lab.live.machines import UsageServer

CONTROLS = ("dovetail-control-a", "dovetail-control-b")
PROCESSES = (EXTENDER, *CONTROLS)
"""What may be killed at any moment."""

WRITER = "dovetail-control"
"""The user that both replicas of `control` are; its writes are those in the audit log."""

_MASTERS = "system:masters"
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/dovetail-control"
_WRITTEN = ["pods", "pods/status", "pods/resize", "pods/eviction"]
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "users": [WRITER],
            "verbs": ["patch", "update", "create"],
            "resources": [{"group": "", "resources": _WRITTEN}],
        },
        {"level": "None"},
    ],
}


@dataclass(frozen=True)
class Plane:
    """All that runs. `front` stands between `control` and Prometheus, `controls` are the addresses of its replicas."""

    control_plane: ControlPlane
    prometheus: Component
    prometheus_url: str
    front: Front
    controls: tuple[str, ...]
    audit: Path
    recording: Recording

    def measured(self) -> list[float | None]:
        """Return how many nodes each replica of `control` holds for measured; None where it does not answer."""
        return [_metric(url, 'dovetail_usage_nodes{state="measured"}') for url in self.controls]


@contextmanager
def plane(programs: Mapping[str, Path]) -> Iterator[Plane]:
    """Run everything, on a cluster without nodes."""
    with ExitStack() as stack:
        audit, flags = _audit(Path(stack.enter_context(TemporaryDirectory(prefix="dovetail-audit-"))))
        usage = {KWOK: [f"--config={monitoring.KWOK_USAGE}"], APISERVER: flags}
        control_plane = stack.enter_context(ControlPlane(programs, flags=usage))
        client = control_plane.client()
        disks = UsageServer(client, use_of, dimensions=(DISK_READ,))
        stack.callback(disks.close)
        (port,) = ports.pick(1)
        prometheus, url = _prometheus(control_plane, disks, port), f"http://127.0.0.1:{port}"
        started = stack.enter_context(monitoring.starting())(prometheus)
        front = Front(url)
        stack.callback(front.close)
        recording = stack.enter_context(Recording(client, _LEASE))
        controls = _add_dovetail(control_plane, front.url)
        yield Plane(control_plane, started, url, front, controls, audit, recording)


def _audit(folder: Path) -> tuple[Path, list[str]]:
    """Return where the API server writes down what `control` writes to pods, and the flags that have it do so."""
    policy, log = folder / "policy.yaml", folder / "audit.log"
    policy.write_text(yaml.safe_dump(_AUDIT))
    return log, [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]


def _prometheus(control_plane: ControlPlane, disks: UsageServer, port: int) -> Launch:
    jobs = [
        monitoring.discovered("kwok", control_plane.ports[KWOK], SCRAPE_SECONDS),
        monitoring.scraped("disks", [disks.address], SCRAPE_SECONDS, honor_labels=True),
    ]
    program = monitoring.program(pins.prometheus())
    return monitoring.prometheus(program, control_plane.folder / "prometheus", port, jobs)


def _add_dovetail(control_plane: ControlPlane, url: str) -> tuple[str, ...]:
    document = settings(url)
    extender = control_plane.add_extender(document)
    control_plane.add_scheduler(dovetail_configuration(extender))
    return tuple(control_plane.add_control(document, user=WRITER, group=_MASTERS, name=name) for name in CONTROLS)


def _metric(url: str, sample: str) -> float | None:
    try:
        answer = urllib3.request("GET", f"{url}/metrics", timeout=2.0, retries=False)
    except urllib3.exceptions.HTTPError:
        return None
    lines = [line for line in answer.data.decode().splitlines() if line.startswith(f"{sample} ")]
    return float(lines[0].rpartition(" ")[2]) if lines else None

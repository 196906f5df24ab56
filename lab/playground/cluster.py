"""What the playground consists of: nodes that declare disk and network, three queues, and Dovetail beside them."""

from pathlib import Path
from string import ascii_lowercase
from typing import Any

import yaml

from extender.adapters.metrics.scraping import NAME_LABEL
from extender.settings.sections import LeaseSettings
from lab.controlplane import builders, workload
from lab.controlplane.builders import Manifest
from lab.controlplane.configurations import dovetail_configuration
from lab.controlplane.running import ControlPlane

NAMESPACE = LeaseSettings().namespace
QUEUES = {"research": 3, "analytics": 2, "reports": 1}
SCHEDULERS = ("dovetail", "default-scheduler")
RACK_LABEL = "topology.kubernetes.io/rack"
NODE_CPU, NODE_MEMORY = "8", "32Gi"
NODE_RATES = {"disk-read": "400M", "disk-write": "400M", "network-in": "125M", "network-out": "125M"}

_GATING = Path(__file__).parents[2] / "manifests" / "gating" / "scheduler.yaml"
_GATING_API = "/apis/admissionregistration.k8s.io/v1"


def start_dovetail(control_plane: ControlPlane, node_count: int) -> None:
    """Fill a control plane that runs: namespace and settings, nodes, `serve`, kube-scheduler, `control`.

    One kube-scheduler has both profiles, so no two schedulers race for a node.
    """
    settings = _settings()
    url = control_plane.add_extender(settings)
    control_plane.apply(settings_manifests(url))
    if _gating_is_served(control_plane):
        control_plane.apply(yaml.safe_load_all(_GATING.read_text(encoding="utf-8")))
    workload.create_nodes(control_plane.client(), nodes(node_count))
    control_plane.add_scheduler(_scheduler_configuration(url))
    control_plane.add_control(settings)


def nodes(count: int) -> list[Manifest]:
    """Return nodes `node-a`, `node-b`, ... of two racks, with disk and network in bytes per second."""
    return [
        builders.node(
            f"node-{letter}",
            cpu=NODE_CPU,
            memory=NODE_MEMORY,
            capacity=NODE_RATES,
            labels={RACK_LABEL: f"rack-{row % 2 + 1}"},
        )
        for row, letter in enumerate(ascii_lowercase[:count])
    ]


def settings_manifests(url: str) -> list[Manifest]:
    """Return Dovetail's namespace, and the ConfigMap where `explain`, `queues` and `doctor` look for what is set.

    `url` is the address of `serve`.
    """
    document = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration", **_settings()}
    label, _, value = NAME_LABEL.partition("=")
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "dovetail", "namespace": NAMESPACE, "labels": {label: value}},
        "data": {
            "dovetail.yaml": yaml.safe_dump(document),
            "kube-scheduler.yaml": yaml.safe_dump(_scheduler_configuration(url)),
        },
    }
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, config_map]


def _settings() -> dict[str, Any]:
    return {
        "placement": {"chosenBy": "filter"},
        "control": {"schedulers": list(SCHEDULERS), "lease": {"namespace": NAMESPACE}},
        "queues": [{"name": name, "weight": weight} for name, weight in QUEUES.items()],
    }


def _scheduler_configuration(url: str) -> dict[str, Any]:
    configuration = dovetail_configuration(url)
    (profile,) = configuration["profiles"]
    return configuration | {"profiles": [profile | {"schedulerName": name} for name in SCHEDULERS]}


def _gating_is_served(control_plane: ControlPlane) -> bool:
    """Tell whether the API server knows MutatingAdmissionPolicies (Kubernetes 1.36)."""
    return "mutatingadmissionpolicies" in control_plane.resources(_GATING_API)

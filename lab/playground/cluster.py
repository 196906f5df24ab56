"""What the playground consists of: nodes that declare disk and network, three queues, and Dovetail beside them."""

from string import ascii_lowercase
from typing import Any

import yaml

from extender.adapters.metrics.scraping import NAME_LABEL
from lab.controlplane import builders, workload
from lab.controlplane.builders import Manifest
from lab.controlplane.running import ControlPlane
from lab.live.schedulers import CHOSEN, NAMES, NAMESPACE, add_policies, scheduler_configuration

QUEUES = {"research": 3, "analytics": 2, "reports": 1}
RACK_LABEL = "topology.kubernetes.io/rack"
NODE_CPU, NODE_MEMORY = "8", "32Gi"
NODE_RATES = {"disk-read": "400M", "disk-write": "400M", "network-in": "125M", "network-out": "125M"}


def start_dovetail(control_plane: ControlPlane, node_count: int) -> None:
    """Fill a control plane that runs: namespace and settings, nodes, `serve`, kube-scheduler, `control`.

    One kube-scheduler has both profiles, so no two schedulers race for a node.
    """
    settings = _settings()
    url = control_plane.add_extender(settings)
    control_plane.apply(settings_manifests(url))
    add_policies(control_plane)
    workload.create_nodes(control_plane.client(), nodes(node_count))
    control_plane.add_scheduler(scheduler_configuration(url))
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
            "kube-scheduler.yaml": yaml.safe_dump(scheduler_configuration(url)),
        },
    }
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, config_map]


def _settings() -> dict[str, Any]:
    return {
        **CHOSEN,
        "control": {"schedulers": list(NAMES), "lease": {"namespace": NAMESPACE}},
        "queues": [{"name": name, "weight": weight} for name, weight in QUEUES.items()],
    }

"""Who schedules on a control plane: the stock scheduler, or Dovetail as its chart ships it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from extender.cluster.model import HOLD_GATE
from extender.cluster.queues import Queue
from extender.settings.sections import LeaseSettings
from lab.controlplane import builders, workload
from lab.controlplane.builders import Manifest
from lab.controlplane.configurations import dovetail_configuration, stock_configuration
from lab.controlplane.gating import install, policies_are_served
from lab.controlplane.launches import CONTROL, EXTENDER, SCHEDULER
from lab.controlplane.rest import request
from lab.controlplane.running import ControlPlane

CHOSEN: Mapping[str, Any] = {"placement": {"chosenBy": "filter"}}
"""What the chart sets for its own scheduler: Dovetail alone ranks nodes, so it chooses."""

NAMESPACE = LeaseSettings().namespace
"""Dovetail's own: the shipped policies look there for what `control` says."""

NAMES = ("dovetail", "default-scheduler")
"""The scheduler that the shipped policies write into pods, and the one that pods name at first: one process is both."""

HOLD = {"schedulingGates": [{"name": HOLD_GATE}]}
"""What a pod's spec has where its user wants it held, and no policy does that."""

_POLICIES = Path(__file__).parents[2] / "manifests" / "gating" / "scheduler.yaml"
_MANAGED = "dovetail.dev/managed"
_GROUP = "scheduling.x-k8s.io/pod-group"
_SEEN_SECONDS = 60.0


def add_stock(control_plane: ControlPlane) -> None:
    """Start kube-scheduler alone."""
    control_plane.add_scheduler(stock_configuration())


def add_dovetail(control_plane: ControlPlane, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Start `dovetail serve` and `control` with these settings, and a kube-scheduler that asks them.

    It has the default order, `auto`: pods of the namespace `default` are held as the shipped policies say. Returns what
    their specs need where the API server has no such policies (before Kubernetes 1.36), the gate; else nothing.
    """
    control_plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    by_policy = add_policies(control_plane)
    url = control_plane.add_extender(settings)
    control_plane.add_scheduler(scheduler_configuration(url))
    control_plane.add_control(settings)
    if by_policy:
        _manage(control_plane, managed=True)
    return {} if by_policy else HOLD


def remove(control_plane: ControlPlane) -> None:
    """Stop whoever schedules, so that somebody else can; new pods are held no longer."""
    if CONTROL in control_plane.pids and policies_are_served(control_plane):
        _manage(control_plane, managed=False)
    for component in (CONTROL, SCHEDULER, EXTENDER):
        if component in control_plane.pids:
            control_plane.remove_scheduler(component)


def add_policies(control_plane: ControlPlane) -> bool:
    """Install the shipped policies and the kind that they read; return False where the API server knows no policies."""
    return install(
        control_plane, [policy for policy in yaml.safe_load_all(_POLICIES.read_text(encoding="utf-8")) if policy]
    )


def scheduler_configuration(url: str) -> dict[str, Any]:
    """Return what the chart ships for kube-scheduler, for an extender at `url`; it is the scheduler of both names."""
    configuration = dovetail_configuration(url)
    (profile,) = configuration["profiles"]
    return configuration | {"profiles": [profile | {"schedulerName": name} for name in NAMES]}


def settings_for(queues: Sequence[Queue]) -> dict[str, Any]:
    """Return Dovetail's settings for these queues."""
    control = {"schedulers": list(NAMES), "lease": {"namespace": NAMESPACE}}
    return {**CHOSEN, "control": control, "queues": [{"name": queue.name, "weight": queue.weight} for queue in queues]}


def _manage(control_plane: ControlPlane, *, managed: bool) -> None:
    """Have new pods of the namespace `default` held as the policies say, or left alone; return once that is so."""
    labels = {"metadata": {"labels": {_MANAGED: "true" if managed else None}}}
    request(
        control_plane.client(), "PATCH", "/api/v1/namespaces/default", labels, content="application/merge-patch+json"
    )
    wanted = "held" if managed else "left alone"
    workload.wait_until(lambda: _holds_gangs(control_plane) == managed, _SEEN_SECONDS, f"new pods to be {wanted}")


def _holds_gangs(control_plane: ControlPlane) -> bool:
    """Tell whether a gang would be held, as the policies do at any time; nothing is created."""
    gang: Manifest = builders.pod("gang", cpu="1m", memory="1Mi", labels={_GROUP: "gang"})
    path = "/api/v1/namespaces/default/pods"
    made = request(control_plane.client(), "POST", path, gang, dryRun="All")
    return bool(made["spec"].get("schedulingGates"))

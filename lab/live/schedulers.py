"""Who schedules on a control plane: the stock scheduler, or Dovetail as its chart ships it."""

from collections.abc import Mapping, Sequence
from typing import Any

from extender.cluster.queues import Queue
from lab.controlplane.configurations import dovetail_configuration, stock_configuration
from lab.controlplane.launches import CONTROL, EXTENDER, SCHEDULER
from lab.controlplane.running import ControlPlane

CHOSEN: Mapping[str, Any] = {"placement": {"chosenBy": "filter"}}
"""What the chart sets for its own scheduler: Dovetail alone ranks nodes, so it chooses."""


def add_stock(control_plane: ControlPlane) -> None:
    """Start kube-scheduler alone."""
    control_plane.add_scheduler(stock_configuration())


def add_dovetail(control_plane: ControlPlane, settings: Mapping[str, Any]) -> None:
    """Start `dovetail serve` and `control` with these settings, and a kube-scheduler that asks them."""
    url = control_plane.add_extender(settings)
    control_plane.add_scheduler(dovetail_configuration(url))
    control_plane.add_control(settings)


def remove(control_plane: ControlPlane) -> None:
    """Stop whoever schedules, so that somebody else can."""
    for component in (CONTROL, SCHEDULER, EXTENDER):
        if component in control_plane.pids:
            control_plane.remove_scheduler(component)


def settings_for(queues: Sequence[Queue]) -> dict[str, Any]:
    """Return Dovetail's settings for these queues: it looks after the pods of the default scheduler."""
    control = {"schedulers": ["default-scheduler"], "lease": {"namespace": "default"}}
    return {**CHOSEN, "control": control, "queues": [{"name": queue.name, "weight": queue.weight} for queue in queues]}

"""Makes machines of a machines file."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from extender.cluster.eligibility import Taint
from extender.cluster.model import Node
from extender.cluster.resources import (
    DIMENSIONS,
    IO_DIMENSIONS,
    PODS,
    declared_amounts,
    is_extended,
    parse_quantity,
)
from extender.errors import BadQuantity, TraceError
from lab.sim.files.format import RESOURCES, MachineLine, Quantity, is_resource
from lab.sim.files.lines import json_lines
from lab.sim.workloads.workload import UNLIMITED, Machines

MOST_MACHINES = 100_000
_VOLUMES = "attachable-volumes-"


def machines_of(path: Path) -> Machines:
    """Return the machines of a file. Raises TraceError, naming file, line, field and what is accepted."""
    # 1. Each line is machines of one shape; no name stands twice.
    nodes: list[Node] = []
    racks: list[str | None] = []
    moves: list[float] = []
    lines: dict[str, str] = {}
    places = ""
    for where, line in json_lines(path, MachineLine):
        offered = {name: amount for name, amount in line.allocatable.items() if not _is_left_out(name)}
        places = places or ("; places for pods do not count" if PODS in line.allocatable else "")
        allocatable = amounts(where, "allocatable.{}".format, offered)
        _require_whole(where, offered)
        taints = tuple(Taint(taint.key, taint.value, taint.effect) for taint in line.taints)
        names = [line.name] if line.count is None else [f"{line.name}-{number}" for number in range(line.count)]
        for name in names:
            if name in lines:
                raise TraceError(
                    f"{where}: field name: {name!r} is the name of a machine of {lines[name]} already; "
                    "accepted: each name once"
                )
            lines[name] = where
            nodes.append(Node(name, allocatable, labels=line.labels, taints=taints))
            racks.append(line.rack)
            moves.append(line.move_seconds)
        if len(nodes) > MOST_MACHINES:
            raise TraceError(f"{where}: over {MOST_MACHINES} machines; accepted: at most as many")
    if not nodes:
        raise TraceError(f"{path} has no machines; needed: a line with name and allocatable for each shape")
    # 2. The axis: the six dimensions, then by name what else some machine offers.
    axis = (*DIMENSIONS, *sorted({name for node in nodes for name in node.allocatable} - set(DIMENSIONS)))
    capacity = np.array([[_offer(node.allocatable, name) for name in axis] for node in nodes])
    return Machines(
        name=f"{path.name} ({len(nodes)}{places})",
        capacity=capacity,
        racks=_rack_rows(racks),
        axis=axis,
        nodes=tuple(nodes),
        move_seconds=np.array(moves) if any(moves) else None,
    )


def amounts(where: str, field_of: Callable[[str], str], quantities: Mapping[str, Quantity]) -> dict[str, float]:
    """Return quantities in the units of the service. Raises TraceError for what is not accepted.

    `field_of`: the field that gives the amount of the resource of this name.
    """
    given: dict[str, float] = {}
    for name, quantity in quantities.items():
        if not is_resource(name):
            raise TraceError(f"{where}: field {field_of(name)}: there is no such resource; accepted: {RESOURCES}")
        try:
            given |= declared_amounts({name: _text(quantity)}, [name])
        except BadQuantity as error:
            raise TraceError(f"{where}: field {field_of(name)}{str(error).removeprefix(name)}") from None
    return given


def _is_left_out(name: str) -> bool:
    """Say whether nodes advertise something of this name that no workload asks for by itself."""
    return name == PODS or name.startswith(_VOLUMES)


def _require_whole(where: str, offered: Mapping[str, Quantity]) -> None:
    """Raise TraceError for a part of a device: Kubernetes counts whole ones."""
    for name, quantity in offered.items():
        if is_extended(name) and parse_quantity(_text(quantity), per_unit=1_000) % 1_000:
            raise TraceError(f"{where}: field allocatable.{name}: {quantity} is no whole number; accepted: whole ones")


def _text(quantity: Quantity) -> str:
    """Return a quantity as it would stand in a manifest: 4.0 is 4."""
    if isinstance(quantity, float) and quantity.is_integer() and math.fabs(quantity) < 2.0**53:
        return str(int(quantity))
    return str(quantity)


def _offer(allocatable: Mapping[str, float], name: str) -> float:
    return allocatable.get(name, UNLIMITED if name in IO_DIMENSIONS else 0.0)


def _rack_rows(racks: list[str | None]) -> np.ndarray[tuple[int], np.dtype[np.intp]] | None:
    """Return the rack of each machine [N], -1 for none; None where no machine has one."""
    if not any(racks):
        return None
    rows = {rack: row for row, rack in enumerate(sorted({rack for rack in racks if rack}))}
    return np.array([rows[rack] if rack else -1 for rack in racks], dtype=np.intp)

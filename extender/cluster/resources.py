"""The resource axis: which dimensions there are, their units, and how quantities are read.

Amounts are floats that hold integers (millicores, bytes, bytes per second, pieces), so sums are exact below 2**53.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType

from extender.cluster.pods.limits import LONGEST_NUMBER
from extender.errors import BadQuantity, TooLarge

Amounts = Mapping[str, float]
"""Dimension -> amount in its unit. A dimension that is absent is not asked for, or not declared."""

CPU, MEMORY = "cpu", "memory"
DISK_READ, DISK_WRITE, NETWORK_IN, NETWORK_OUT = "disk-read", "disk-write", "network-in", "network-out"
IO_UNITS = MappingProxyType({DISK_READ: "B/s", DISK_WRITE: "B/s", NETWORK_IN: "B/s", NETWORK_OUT: "B/s"})
"""The rates that users declare by annotation, and their units. A node that does not declare one does not limit it.

A new dimension is one entry here: docs/developing/add-a-resource-dimension.md.
"""

IO_DIMENSIONS = tuple(IO_UNITS)
DIMENSIONS = (CPU, MEMORY, *IO_DIMENSIONS)
"""Tetris, table 4: millicores, bytes, and the rates. What else nodes offer comes after these on every axis."""

CPU_INDEX, MEMORY_INDEX = DIMENSIONS.index(CPU), DIMENSIONS.index(MEMORY)
DISK_READ_INDEX, DISK_WRITE_INDEX = DIMENSIONS.index(DISK_READ), DIMENSIONS.index(DISK_WRITE)
NETWORK_IN_INDEX, NETWORK_OUT_INDEX = DIMENSIONS.index(NETWORK_IN), DIMENSIONS.index(NETWORK_OUT)
"""Where the dimensions are that code asks for by name; the same on every axis."""

PODS, EPHEMERAL, HUGEPAGES = "pods", "ephemeral-storage", "hugepages-"
"""How many pods a node takes, its scratch space in bytes, and what the names of its huge pages (bytes) begin with."""

DEVICE_CLAIMS = "device-claims"
"""How many device claims a pod has. They may bring what no node advertises."""

LARGEST = float(2**53)

_QUANTITY = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([eE][+-]?\d{1,3})|([KMGTPE]i|[numkMGTPE]))?", re.ASCII)
_SUFFIXES = {suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_SUFFIXES |= {
    suffix: Decimal(1000) ** power for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
}


def parse_quantity(text: object, *, per_unit: int = 1) -> float:
    """Return the amount that a Kubernetes quantity names, times `per_unit`, rounded up to a whole number.

    Raises BadQuantity where it is malformed, too long or negative, TooLarge where it is 2**53 and above.
    """
    written = text if isinstance(text, str) else str(text)
    if len(written) > LONGEST_NUMBER:
        raise BadQuantity(f"a quantity of {len(written)} characters; accepted: at most {LONGEST_NUMBER}")
    match = _QUANTITY.fullmatch(written)
    if match is None or isinstance(text, bool):
        raise BadQuantity(f"{text!r} is not a quantity; accepted: numbers such as 2, 0.5, 250m, 100Mi, 1G")
    number, exponent, suffix = match.groups()
    amount = Decimal(number + (exponent or "")) * _SUFFIXES[suffix or ""] * per_unit
    if amount < 0:
        raise BadQuantity(f"{text!r} is negative; accepted: zero or more")
    if amount >= LARGEST:
        raise TooLarge(f"{text!r} is too large; accepted: below {LARGEST / per_unit:.16g}")
    return float(math.ceil(amount))


_OWN_DOMAIN = "kubernetes.io/"


def is_extended(name: str) -> bool:
    """Say whether Kubernetes calls this an extended resource (a domain that is not its own, as in nvidia.com/gpu)."""
    return "/" in name and _OWN_DOMAIN not in name and not name.startswith("requests.")


def is_packed(name: str) -> bool:
    """Say whether a dimension takes part in how well a pod suits a node.

    Pod slots, scratch space and huge pages do not: nearly all pods leave nearly all of them, whichever node they take.
    Nor does what has Kubernetes' own domain, such as kubernetes.io/batch-cpu: it is CPU or memory by another name.
    """
    return name not in (PODS, EPHEMERAL) and not name.startswith(HUGEPAGES) and _OWN_DOMAIN not in name


def countable(quantities: Mapping[str, str]) -> dict[str, float]:
    """Return the amounts of those resources that we count, as kube-scheduler does.

    They are CPU, memory, scratch space, huge pages, extended ones, and those of Kubernetes' own domain.
    What Kubernetes let through but is larger than we can add up exactly counts as the largest amount.
    """
    return {
        name: _clamped(quantity, 1000 if name == CPU else 1)
        for name, quantity in quantities.items()
        if name in (CPU, MEMORY, EPHEMERAL) or name.startswith(HUGEPAGES) or _OWN_DOMAIN in name or is_extended(name)
    }


def offered(allocatable: Mapping[str, str]) -> dict[str, float]:
    """Return the amounts of what a node offers that we count: what pods ask for, and places for pods."""
    return countable(allocatable) | ({PODS: _clamped(allocatable[PODS], 1)} if PODS in allocatable else {})


def io_amounts(quantities: Mapping[str, object]) -> dict[str, float]:
    """Return disk and network rates in bytes per second. Raises BadQuantity, naming the key and what is accepted."""
    return declared_amounts(quantities, IO_DIMENSIONS)


def declared_amounts(quantities: Mapping[str, object], dimensions: Sequence[str]) -> dict[str, float]:
    """Return what is declared of these dimensions. Raises BadQuantity, naming the key and what is accepted."""
    amounts = {}
    for name, quantity in quantities.items():
        if name not in dimensions:
            raise BadQuantity(f"{name!r} is not a dimension; accepted: {', '.join(dimensions)}")
        try:
            amounts[name] = parse_quantity(quantity, per_unit=1000 if name == CPU else 1)
        except BadQuantity as error:
            raise BadQuantity(f"{name}: {error}") from None
    return amounts


def row_of(amounts: Amounts, *, otherwise: float = 0.0) -> list[float]:
    """Return amounts in the order of `DIMENSIONS` [R]: `otherwise` of those that are not there."""
    return [amounts.get(name, otherwise) for name in DIMENSIONS]


def add(left: Amounts, right: Amounts) -> dict[str, float]:
    """Return the sum, dimension by dimension."""
    return {name: left.get(name, 0.0) + right.get(name, 0.0) for name in (*left, *(n for n in right if n not in left))}


def greatest(parts: Iterable[Amounts]) -> dict[str, float]:
    """Return the largest amount of each dimension."""
    most: dict[str, float] = {}
    for part in parts:
        for name, amount in part.items():
            most[name] = max(amount, most.get(name, 0.0))
    return most


def _clamped(quantity: str, per_unit: int) -> float:
    try:
        return parse_quantity(quantity, per_unit=per_unit)
    except BadQuantity:
        return 0.0 if quantity.startswith("-") else LARGEST - 1

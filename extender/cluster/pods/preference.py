"""Where a pod would rather run: the nodes that hold its input, else those that its own affinity prefers."""

from collections.abc import Sequence
from typing import Any

import msgspec

from extender.cluster.eligibility import Term
from extender.cluster.pods.limits import LONGEST_INPUT, LONGEST_NAME, bad_json, require_at_most
from extender.cluster.resources import parse_quantity
from extender.errors import BadQuantity

INPUT_ANNOTATION = "dovetail.dev/input"

InputHolders = tuple[tuple[str, float], ...]
"""Nodes, by name, and how many bytes of the pod's input each holds."""

Preferences = tuple[tuple[int, Term], ...]
"""The weights and terms of a preferred node affinity."""

MOST_NODES = 1_000
_HOLDS_ENOUGH = 0.5


def declared_input(annotation: str | None) -> InputHolders:
    """Return the nodes that an annotation declares to hold the pod's input, sorted; none without annotation.

    Nodes that hold nothing are left out. Raises BadAnnotation, which names the annotation and what is accepted.
    """
    if annotation is None:
        return ()
    require_at_most(LONGEST_INPUT, annotation, INPUT_ANNOTATION)
    try:
        inputs = msgspec.json.decode(annotation, type=dict[str, Any])
        if len(inputs) > MOST_NODES:
            raise BadQuantity(f"{len(inputs)} nodes; accepted: at most {MOST_NODES}")
        amounts = {node: _bytes(node, quantity) for node, quantity in inputs.items()}
    except (msgspec.DecodeError, BadQuantity, RecursionError) as error:
        accepted = 'a JSON object of nodes and bytes such as {"node-a": "128Mi", "node-b": "128Mi"}'
        raise bad_json(INPUT_ANNOTATION, error, accepted) from None
    return tuple(sorted((node, amount) for node, amount in amounts.items() if amount > 0))


def holders(inputs: InputHolders) -> Sequence[str]:
    """Return the nodes that count as having the input: those with at least half as much of it as any."""
    most = max((amount for _, amount in inputs), default=0.0)
    return [node for node, amount in inputs if amount >= _HOLDS_ENOUGH * most]


def _bytes(node: str, quantity: object) -> float:
    if not node:
        raise BadQuantity("a node without a name; accepted: names of nodes")
    if len(node) > LONGEST_NAME:
        raise BadQuantity(f"a node's name of {len(node)} characters; accepted: at most {LONGEST_NAME}")
    try:
        return parse_quantity(quantity)
    except BadQuantity as error:
        raise BadQuantity(f"{node}: {error}") from None

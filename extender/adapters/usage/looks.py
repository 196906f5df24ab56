"""One look at the use of a cluster, whoever measured it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from extender.cluster.model import Node, Pod
from extender.cluster.usage import Usage

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class UsageLook:
    """What one look brought. `node_of` says on which node each opportunistic pod was (by UID).

    They are left out with their node once it grows too old. `strangers` counts series that are of no node here, `named`
    names some of them; other clusters in a shared store are such. `failure` says why nothing was read at all, `kind` in
    one word.
    """

    usage: Usage
    node_of: Mapping[str, str] = field(default_factory=dict)
    strangers: int = 0
    named: tuple[str, ...] = ()
    failure: str | None = None
    kind: str = ""


class Source(Protocol):
    """Who measures: Prometheus, or the API `metrics.k8s.io`."""

    def look(self, nodes: Sequence[Node], pods: Sequence[Pod]) -> UsageLook:
        """Return the use of these nodes, and of these pods, each of which is, or has ended, on a node.

        Raises UsageError.
        """

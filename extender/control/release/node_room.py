"""Whether the node that a pod is to go to still has room for it, by what the watches show."""

from extender.arrays import Floats, short_of
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog
from extender.verdict import demand_on, room_for


def has_room(backlog: Backlog, snapshot: Snapshot, pod: Pod, node: str | None, more: Floats | float = 0.0) -> bool:
    """Say whether a node is there, takes the pod and has room for it, with so much `more` [R] of what others hold."""
    row, known_node = snapshot.layout.rows.get(node or ""), backlog.nodes.get(node or "")
    if row is None or known_node is None or not known_node.allows(pod.constraints):
        return False
    demand = demand_on(snapshot.layout, pod)
    return not short_of(room_for(snapshot, pod)[row] + more, demand if demand.ndim == 1 else demand[row]).any()

"""Queues: the groups that fairness is for, and the tree that they form."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

_MOST_SHOWN = 5
"""So many queues are named where a parent is none of them, and how many more there are."""


@dataclass(frozen=True, slots=True)
class Queue:
    """`weight` counts among siblings; `minimum` is the part of the cluster that it is sure of, in [0, 1].

    Inside, jobs share (fair) or go in the order of their arrival (`fifo`). Who may use it: the `namespaces` of these
    names, or those that carry all these labels; None: all. `opportunistic` is ALLOWED or NEVER for its pods that choose
    nothing, "": as its parent says.
    """

    name: str
    weight: float = 1.0
    minimum: float = 0.0
    fifo: bool = False
    parent: str = ""
    namespaces: Sequence[str] | Mapping[str, str] | None = None
    opportunistic: str = ""

    @property
    def asks_for_labels(self) -> bool:
        """Whether labels of namespaces say who may use it."""
        return isinstance(self.namespaces, Mapping)

    def admits(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Say whether a namespace may use it; `labels` None: nobody knows them, so no label is there."""
        if self.namespaces is None:
            return True
        if isinstance(self.namespaces, Mapping):
            return self.namespaces.items() <= (labels or {}).items()
        return namespace in self.namespaces


def chosen_by_queue(queues: Sequence[Queue]) -> Mapping[str, str]:
    """Return what queues choose of opportunistic pods, by name: their own choice, else that of the nearest above."""
    by_name = {queue.name: queue for queue in queues}
    chosen: dict[str, str] = {}
    for queue in queues:
        path = [queue]
        while not path[-1].opportunistic and path[-1].name not in chosen and len(path) <= len(queues):
            above = by_name.get(path[-1].parent)
            if above is None:
                break
            path.append(above)
        choice = path[-1].opportunistic or chosen.get(path[-1].name, "")
        chosen |= {below.name: choice for below in path}
    return {name: choice for name, choice in chosen.items() if choice}


def mistakes_of(queues: Sequence[Queue]) -> Iterator[str]:
    """Yield what is wrong between queues: a name twice, a parent that is not there, a parent below its own child."""
    parents = {queue.name: queue.parent for queue in queues}
    if len(parents) < len(queues):
        counts = Counter(queue.name for queue in queues)
        yield f"{next(name for name, count in counts.items() if count > 1)!r} stands twice; accepted: each name once"
        return
    first, in_circles = sorted(parents)[: _MOST_SHOWN + 1], _in_circles(parents)
    for queue in queues:
        if queue.parent and queue.parent not in parents:
            others = [name for name in first if name != queue.name][:_MOST_SHOWN]
            more = len(parents) - 1 - len(others)
            known = f"{', '.join(others) or 'none'}{f' and {more:,} more' if more else ''}"
            yield f"the parent of {queue.name!r} is {queue.parent!r}, which is no queue here; accepted: {known}"
        elif queue.name in in_circles:
            yield f"{queue.name!r} is its own ancestor; accepted: parents without a cycle"


def _in_circles(parents: Mapping[str, str]) -> Set[str]:
    """Return the queues that are above themselves: those that are left once all without a child were taken out."""
    left, children = dict(parents), Counter(parents.values())
    childless = [name for name in parents if not children[name]]
    for name in childless:  # it grows by the parents of those that were taken out
        parent = left.pop(name)
        children[parent] -= 1
        if parent in left and not children[parent]:
            childless.append(parent)
    return left.keys()

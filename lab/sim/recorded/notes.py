"""What a reader should know of what is not replayed, or not as it was."""

from collections import Counter
from collections.abc import Iterator, Sequence

from extender.arrays import Mask
from extender.cluster.peers import ALONE
from extender.cluster.recording.lines import (
    HOST_PORTS,
    NAMESPACE_SELECTORS,
    POD_AFFINITY,
    PREFERRED,
    SPREAD_ANYWAY,
    SPREADING,
    VOLUMES,
    PodLine,
)

_WORDS = {
    HOST_PORTS: "host ports",
    POD_AFFINITY: "required affinity to other pods, or away from them",
    SPREADING: "topology spread constraints",
    NAMESPACE_SELECTORS: "affinity to pods of namespaces that are selected by labels",
    PREFERRED: "preferred affinity, or anti-affinity",
    SPREAD_ANYWAY: "topology spread constraints that need not be met",
    VOLUMES: "volumes by claims",
}


def notes_of(
    pods: Sequence[PodLine],
    *,
    together: Mask,
    stay: int,
    again: int,
    unknown: Sequence[str],
    others: Sequence[tuple[int, str]],
) -> list[str]:
    """Return what is to be said, each with its count; nothing of what there is none of.

    `pods` [T] are replayed, `together` [T] those that start with their group; `stay` of them keep their node, and in
    the place of `again` others were made. Resources that are `unknown` are not counted. `others` are counts and
    sentences about the rest of the recording.
    """
    without = [sum(name in pod.demand for pod in pods) for name in unknown]
    apart = sum(bool(pod.group) for pod in pods) - int(together.sum())
    priorities = len({pod.priority for pod in pods}) - 1
    idle = sum(pod.opportunistic for pod in pods)
    unmet = Counter(name for pod in pods for name in {*pod.unwritten, *_of_peers(pod)})
    notes = [
        *others,
        *(
            (count, f"{count} pods ask for {name}, which no node offers: not counted.")
            for name, count in zip(unknown, without, strict=True)
        ),
        *(
            (count, f"{count} pods have {_WORDS.get(name, name)}: not counted.")
            for name, count in sorted(unmet.items())
        ),
        (stay, f"{stay} pods ran where their selectors and the nodes' taints do not let them: they keep their nodes."),
        (
            again,
            f"{again} pods were preempted or evicted, or their node went, and others were made in their place: "
            "simulated, the two are one task, which comes with the first and takes as long as the last.",
        ),
        (
            int(together.sum()),
            "Groups of pods start together by Dovetail's planner. By the others their pods start one by one and hold "
            "room; their work begins when enough are there.",
        ),
        (
            apart,
            f"{apart} pods belong to groups of several stages, of which one ended before all were there, or of which "
            "the recording does not say how many start together: they need not.",
        ),
        (priorities, f"Pods have {priorities + 1} priorities: the higher goes first, and preempts."),
        (idle, f"{idle} pods ran on what others left idle: simulated, they are allocated what they ask for."),
    ]
    return [text for count, text in notes if count]


def _of_peers(pod: PodLine) -> Iterator[str]:
    """Yield what the pod asks of others: a recording holds that, and no simulation has it."""
    peers = pod.peers
    if peers == ALONE:
        return
    asked = ((POD_AFFINITY, peers.away or peers.near), (SPREADING, peers.spread), (HOST_PORTS, peers.ports))
    yield from (name for name, there in asked if there)

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
from extender.words import many
from lab.sim.recorded.jobs import BURST_SECONDS

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
    kept: int,
    again: int,
    unknown: Sequence[str],
    others: Sequence[tuple[int, str]],
) -> list[str]:
    """Return what is to be said, each with its count; nothing of what there is none of.

    `pods` [T] are replayed, `together` [T] those that start with their group; `stay` of them keep their node, `kept`
    where all nodes are there all the time, and in the place of `again` others were made. Resources that are `unknown`
    are not counted. `others` are counts and sentences about the rest of the recording.
    """
    without = [sum(name in pod.demand for pod in pods) for name in unknown]
    apart = sum(bool(pod.group) for pod in pods) - int(together.sum())
    priorities = len({pod.priority for pod in pods}) - 1
    idle = sum(pod.opportunistic for pod in pods)
    unmet = Counter(name for pod in pods for name in {*pod.unwritten, *_of_peers(pod)})
    notes = [
        *others,
        *(
            (count, f"{many(count, 'pod')} asked for {name}, which no node offers: not counted.")
            for name, count in zip(unknown, without, strict=True)
        ),
        *(
            (count, f"{many(count, 'pod')} had {_WORDS.get(name, name)}: not counted.")
            for name, count in sorted(unmet.items())
        ),
        (stay, f"{many(stay, 'pod')} ran where selectors and taints do not allow that: each keeps its node."),
        (
            kept,
            f"With --machines recorded-all, where each node is as it was for longest, none would take "
            f"{many(kept, 'pod')} by selectors and taints: each keeps its node.",
        ),
        (
            again,
            f"{many(again, 'pod')} had to go (preempted, evicted, node gone), and another was made in the place of "
            "each: simulated, the two are one task, which comes with the first and takes as long as the last.",
        ),
        (
            int(together.sum()),
            "Groups of pods start together by Dovetail's planner. By the others their pods start one by one and hold "
            "room; their work begins when enough are there.",
        ),
        (
            apart,
            f"{many(apart, 'pod')} of groups may start one by one: a group has several stages, its pods came over "
            f"{BURST_SECONDS:g} s apart, one ended before enough were there, or nobody knows how many start together.",
        ),
        (priorities, f"Pods have {priorities + 1} priorities: the higher goes first, and preempts."),
        (idle, f"{many(idle, 'pod')} ran on what others left idle: simulated, each is allocated what it asks for."),
    ]
    return [text for count, text in notes if count]


def _of_peers(pod: PodLine) -> Iterator[str]:
    """Yield what the pod asks of others: a recording holds that, and no simulation has it."""
    peers = pod.peers
    if peers == ALONE:
        return
    asked = ((POD_AFFINITY, peers.away or peers.near), (SPREADING, peers.spread), (HOST_PORTS, peers.ports))
    yield from (name for name, terms in asked if terms)

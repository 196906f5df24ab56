"""Which opportunistic pods of the cluster are moved because they get next to nothing: `starved`, on a snapshot."""

from collections.abc import Callable, Collection, Sequence

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.resources import CPU, CPU_INDEX
from extender.cluster.usage import Usage
from extender.control.idle_room.measured_use import MeasuredUse
from extender.control.preemption.choice import PreemptionChoice, work_lost
from extender.control.preemption.starved import Squeezed, Starved, on_full_nodes

Usual = Callable[[Sequence[Pod], Floats], Floats]
"""Says what the classes of pods [P] use [P, R]; the second argument [P, R] where that is not known."""


class StarvedPods:
    """Says who is to be moved. `usual` says what classes use. One thread, that of the release loop."""

    def __init__(self, usual: Usual, samples: int) -> None:
        self._usual, self._starved = usual, Starved(samples)
        self._looked: Usage | None = None

    def look(
        self,
        snapshot: Snapshot,
        measured: MeasuredUse,
        usage: Usage,
        now: float,
        *,
        out: Collection[str],
        chosen: Sequence[PreemptionChoice],
    ) -> list[PreemptionChoice]:
        """Return who is to go; nobody of a node that is in `chosen`, or who is `out` of the question (by UID).

        `measured` is on the rows of the snapshot. A look at the use that was seen before says nothing new.
        """
        pods, layout = snapshot.opportunistic, snapshot.layout
        if usage is self._looked or not len(pods.pods):
            return []
        self._looked = usage
        places = on_full_nodes(measured, pods.node, pods.started)
        candidates = [pods.pods[place] for place in places.tolist()]
        samples = [usage.pods.get(pod.uid) for pod in candidates]
        squeezed = Squeezed(
            [pod.uid for pod in candidates],
            pods.node[places],
            np.array([np.nan if sample is None else sample.amounts.get(CPU, np.nan) for sample in samples]),
            self._usual(candidates, np.zeros((len(candidates), len(layout.axis))))[:, CPU_INDEX],
            work_lost(snapshot, places, now),
            np.array([not (pod.leaving or pod.uid in out) for pod in candidates], dtype=np.bool_),
        )
        taken = {layout.rows[choice.node] for choice in chosen}
        return [
            PreemptionChoice(
                layout.names[squeezed.node[place]],
                {CPU: float(pods.demand[places[place], CPU_INDEX])},
                [candidates[place]],
                starved=True,
            )
            for place in self._starved.look(measured, squeezed, taken).tolist()
        ]

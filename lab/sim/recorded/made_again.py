"""Pods that were preempted or evicted, and made again by their owner: of each such row the last did the work."""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from extender.arrays import Rows
from extender.cluster.recording.lines import PodLine


def made_in_place(pods: Sequence[PodLine]) -> Rows:
    """Return of each pod [T] the row of the pod that was made in its place, its own where none was.

    That is the next pod of the same owner and shape that was created once it had been told to go, and that came in no
    other's place.
    """
    alike: dict[Hashable, list[int]] = defaultdict(list)
    for row, pod in enumerate(pods):
        if pod.owner:
            shape = pod.job, pod.stage, tuple(sorted(pod.demand.items())), pod.constraints
            alike[pod.namespace, pod.owner_kind, pod.owner, shape].append(row)
    place = np.arange(len(pods))
    for rows in alike.values():
        gone = sorted((pods[row].disrupted or 0.0, row) for row in rows if _was_cut_off(pods[row]))
        later = sorted((pods[row].created, row) for row in rows) if gone else []
        at = 0
        for since, row in gone:
            itself = pods[row].created, row
            while at < len(later) and (later[at] <= itself or _is_before(later[at][0], since)):
                at += 1
            if at == len(later):
                break
            place[row] = later[at][1]
            at += 1
    return place


def in_the_end(place: Rows) -> Rows:
    """Return of each pod [T] the row of the last that was made in its place, and in that one's, and so on."""
    last = place
    while (last != last[last]).any():  # each turn goes twice as far as the one before
        last = last[last]
    return last


def _is_before(created: float, since: float) -> bool:
    """Say whether a pod was there already; a creation that was not seen as it came is stated in whole seconds."""
    return created < (math.floor(since) if created.is_integer() else since)


def _was_cut_off(pod: PodLine) -> bool:
    return pod.disrupted is not None and pod.outcome in ("failed", "deleted")

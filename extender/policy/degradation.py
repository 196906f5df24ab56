"""How much of a disk or a link is left when more is wanted of it than it gives. Pure: arrays go in.

Graphene (5) has such functions from micro-benchmarks that it does not publish, and says that they are concave. Ours are
made of what is published, named below: a delay grows in proportion to what is overbooked on links up to the knee, and a
little faster on disks. So it is not under-estimated as more is overbooked.
"""

import numpy as np

from extender.arrays import Floats, Mask

SEEK_SECONDS = 0.0127
"""What changing from one stream to another costs a disk of 7200 rpm: 8.5 ms to seek, half a turn of 8.3 ms to wait."""

SLICE_SECONDS = 0.1
"""How long Linux's CFQ serves one stream of a disk before the next (`slice_sync`, Documentation/block/cfq-iosched)."""

LEAST_SLICE_SECONDS = 0.016
"""The floor of that: with more than three streams CFQ of Linux 2.6.32, which Tetris's machines run (5.1), shortens the
slices in proportion, down to twice `slice_idle` (C. Zoccolo, "cfq: adapt slice to number of processes doing I/O")."""

LINK_KNEE = 1.2
"""Up to this load of a link nothing is lost: Graphene (5) overbooks by 20 % and relies on it."""

LINK_SLOPE, LINK_FLOOR = 0.5, 0.5
"""Beyond it incast wastes goodput: up to 90 % where all senders are synchronised (Vasudevan et al., SIGCOMM 2009).
Those of a shuffle are not. That a link keeps two thirds at a load of 2.2, and half at worst, is our choice."""


def goodput(load: Floats, *, disks: Mask, links: Mask, loss: float = 1.0) -> Floats:
    """Return which part of each resource is left of what contention wastes [..., R], at a `load` [..., R].

    A load is demand over capacity. `disks` and `links` [R] say what the resources are; others waste nothing. `loss` is
    how much of it counts: 0 none, 1 what is published (Tetris, 2.1: incast, seeks).

    - A disk seeks between streams that share it. A stream meets others there the more often, the fuller the disk is:
      at a load x there is a seek in every `SLICE_SECONDS` / x. So disks lose below a load of 1 too, whatever the
      scheduler: 11 % at a load of 1. The floor is a seek in every `LEAST_SLICE_SECONDS`.
    - A link wastes nothing up to its knee; from there the loss grows by its slope, down to its floor.
    """
    least_part = LEAST_SLICE_SECONDS / (LEAST_SLICE_SECONDS + SEEK_SECONDS)
    disk = np.maximum(least_part, 1.0 / (1.0 + loss * SEEK_SECONDS / SLICE_SECONDS * load))
    link = np.maximum(LINK_FLOOR, 1.0 / (1.0 + loss * LINK_SLOPE * np.maximum(load - LINK_KNEE, 0.0)))
    return np.where(disks, disk, np.where(links, link, 1.0))


def slowdown(load: Floats, *, disks: Mask, links: Mask) -> Floats:
    """Return how many times as long as at its peak a task takes for what it gets of each resource [..., R], at a load.

    What is left is shared in proportion to demand. At least 1; 1 too for what is neither a disk nor a link.
    """
    longer = np.maximum(load / goodput(load, disks=disks, links=links), 1.0)
    return np.where(disks | links, longer, 1.0)

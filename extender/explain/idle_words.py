"""Why a held pod that may run on idle resources finds none, in words."""

import numpy as np

from extender.arrays import Floats, Mask, Rows, fits
from extender.control.opportunistic.left_over import LeftOver
from extender.explain.amounts import amount

UNMEASURED = "nothing is known of what nodes use, so nobody starts there"
BARRED = "every node is barred: by the pod's constraints, or as pods like it were evicted there lately"
ENOUGH = (
    "there was enough before the last plan: others went first, or its queue or job has its part "
    "(opportunistic.maxQueueShare, maxJobShare)"
)


def idle_reasons(left: LeftOver) -> dict[str, str]:
    """Return why the pods of each class that is left are not started on idle resources, by the class's name."""
    if left.room is None:
        return dict.fromkeys(left.names, UNMEASURED)
    words: dict[tuple[bytes, bytes], str] = {}
    reasons = {}
    for name, demand, barred in zip(left.names, left.demand, left.barred, strict=True):
        key = (demand.tobytes(), barred.tobytes())
        if key not in words:
            words[key] = _reason(left, left.room, demand, barred)
        reasons[name] = words[key]
    return reasons


def _reason(left: LeftOver, room: Floats, demand: Floats, barred: Mask) -> str:
    """Return why one that needs `demand` [R] is not started on a node that is not `barred` [N]."""
    allowed = (~barred).nonzero()[0]
    if not len(allowed):
        return BARRED
    is_unknown = left.unmeasured[allowed].any(axis=1)
    measured, unmeasured = allowed[~is_unknown], allowed[is_unknown]
    if not len(measured):
        return f"of no node all is measured that limits pods there: {_unmeasured(left, unmeasured)}"
    idle = room[measured]
    if fits(idle, demand).any():
        return ENOUGH
    short = ((demand > 0) & (demand > idle)).sum(axis=0)
    worst = int(short.argmax())
    best = int(idle[:, worst].argmax())
    name, node = left.layout.axis[worst], left.layout.names[int(measured[best])]
    most = amount(name, max(float(np.floor(idle[best, worst])), 0.0))
    text = f"no node has enough: mostly {name} is short, the most is {most} on {node}"
    if not len(unmeasured):
        return text
    others = "1 other is" if len(unmeasured) == 1 else f"{len(unmeasured):,} others are"
    return f"{text}; {others} left out, as not all is measured that limits pods there: {_unmeasured(left, unmeasured)}"


def _unmeasured(left: LeftOver, rows: Rows) -> str:
    """Return what is not measured of most of these nodes, so that they are taken to have no idle room."""
    missing = left.unmeasured[rows]
    worst = int(missing.sum(axis=0).argmax())
    node = left.layout.names[int(rows[missing[:, worst]][0])]
    return f"mostly {left.layout.axis[worst]} is not, as of {node}"

"""How long a cluster took to start a pod once there was room. A simulated scheduler takes no time."""

import numpy as np

from extender.arrays import Floats, Rows


def usual_delay(created: Floats, bound: Floats, ended: Floats, node: Rows) -> float:
    """Return the median of the seconds between the moment at which a pod could start, and its binding; all are [T].

    Times are seconds since the recording began. It could start once it was created, and the pod that ended last on its
    `node` before the binding had ended. It is a median because some pods wait for other reasons too. Who was bound at 0
    was bound before, nobody knows after how long, and does not count; 0 where that is all.
    """
    count = len(bound)
    # 1. All ends and bindings of each node by time; an end comes before a binding at the same moment.
    times = np.concatenate((ended, bound))
    is_bind = np.arange(2 * count) >= count
    order = np.lexsort((is_bind, times, np.concatenate((node, node))))
    # 2. The last end before each of them, wherever that was; one of another node is none.
    ends = np.where(is_bind[order], -1, np.arange(2 * count))
    last = np.maximum.accumulate(ends)
    on_node = (last >= 0) & (node[order % count] == node[order[last] % count])
    free_at = np.where(on_node, times[order[last]], -np.inf)[is_bind[order]]
    # 3. From then on, or from its creation, each pod waited for the scheduler alone.
    pods = order[is_bind[order]] - count
    seen = bound[pods] > 0
    return float(np.median((bound[pods] - np.maximum(created[pods], free_at))[seen])) if seen.any() else 0.0

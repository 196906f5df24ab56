"""Whether new pods are held (`order: auto`), in words, and what that means for one pod that waits."""

from dataclasses import dataclass

from extender.cluster.hold import Hold
from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import ONLY
from extender.explain.amounts import seconds

NO_HOLD = "are not held: this cluster has no Hold, so filter alone keeps the order"


@dataclass(frozen=True, slots=True)
class NewPods:
    """Whether pods that are created now get our gate, why, and for how long that has been so.

    `held` is None where the cluster has nothing that says so. `unread` says why it could not be read, empty where it
    could.
    """

    held: bool | None
    why: str = ""
    seconds: float | None = None
    unread: str = ""


def new_pods_of(hold: Hold | None, now: float) -> NewPods:
    """Return what the cluster's Hold says at `now`, in seconds since the epoch; None: there is none."""
    if hold is None:
        return NewPods(None)
    return NewPods(hold.held, hold.why, None if hold.since is None else max(now - hold.since, 0.0))


def in_words(new_pods: NewPods) -> str:
    """Return what follows "New pods"."""
    if new_pods.unread:
        return f"may be held or not: the Hold cannot be read ({new_pods.unread})"
    if new_pods.held is None:
        return NO_HOLD
    since = "" if new_pods.seconds is None else f", for {seconds(new_pods.seconds)}"
    why = f": {new_pods.why}" if new_pods.why else ""
    return f"{'are held' if new_pods.held else 'are not held'}{since}{why}"


def of_this_one(new_pods: NewPods, pod: Pod) -> str:
    """Return what the state of the Hold means for a pod that waits; empty where it goes without saying."""
    if pod.held and (pod.identity.group or pod.choice == ONLY):
        return f"{'pods of gangs' if pod.identity.group else 'pods for idle resources alone'} are held at any time"
    if pod.held and new_pods.held is None and not new_pods.unread:
        return "this one came with its gate"
    if pod.held and new_pods.held is False:
        return "this one keeps its gate until its turn"
    if not pod.gates and new_pods.held:
        return "this one has no gate, and never gets one"
    return ""

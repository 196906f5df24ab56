"""What only kube-scheduler knows of where a pod would rather run: preferences that no ranking of ours counts."""

from extender.adapters.kube.objects import PodObject

_SPREAD_OWNERS = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet"})


def has_preference(pod: PodObject) -> bool:
    """Say whether a pod states a preference: for nodes, for or against other pods, or for being spread.

    A pod of a group is placed with the others of it, perhaps only to see whether all would fit.
    """
    spec, affinity = pod.spec, pod.spec.affinity
    if spec.scheduling_group is not None:
        return True
    if any(one.when_unsatisfiable == "ScheduleAnyway" for one in spec.topology_spread_constraints or ()):
        return True
    if affinity is None:
        return False
    kinds = (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(kind is not None and kind.preferred for kind in kinds)


def is_replica(pod: PodObject) -> bool:
    """Say whether a pod is one of several alike, which kube-scheduler spreads even where none of them asks for it."""
    owners = pod.metadata.owner_references or ()
    return any(owner.controller and owner.kind in _SPREAD_OWNERS for owner in owners)

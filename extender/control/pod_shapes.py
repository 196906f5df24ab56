"""The shape of a pod: what it has in common with those that kube-scheduler would refuse like it.

kube-scheduler refuses pods for reasons that no plan knows (host ports, affinity between pods, devices, other plugins).
Whether it refuses one pod says something of others of the same queue, demand, templates of device claims and
constraints, whatever their job. What depends on other pods is refused apart; not by which pods these are, as each job
may have labels of its own.
"""

from extender.cluster.model import Pod

Shape = tuple[object, ...]
"""A queue's name, then what its pods demand and where they may run."""


def shape_of(pod: Pod, *, volumes: bool = True) -> Shape:
    """Return the shape of a pod.

    Without `volumes` it makes no difference where these are: each pod may have its own.
    """
    constraints = pod.constraints
    where = (constraints,) if volumes else (constraints.selector, constraints.terms, constraints.tolerations)
    asks = (tuple(sorted(pod.demand.items())), pod.asks_of_pods, pod.device_templates)
    return (pod.identity.queue, *asks, *where)


def queue_of(shape: Shape) -> Shape:
    """Return the shape that stands for all shapes of a queue."""
    return shape[:1]

"""How a pod's job is called where people read it: never by a UID."""

from extender.cluster.model import Pod


def job_name(pod: Pod) -> str:
    """Return the job of a pod as its user knows it: as labelled ("namespace/name"), else its owner.

    That is "Job namespace/name". Inside, the job of a pod without labels is its owner's UID, and that of a pod alone
    its own.
    """
    job = pod.identity.job
    if job == pod.owner and pod.owner_name:
        return f"{pod.owner_kind} {pod.namespace}/{pod.owner_name}"
    return f"Pod {pod.full_name}" if job in (pod.owner, pod.uid) else job

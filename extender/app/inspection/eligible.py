"""Counts which waiting pods may be made opportunistic, and of the others why not, from their specs alone.

`control` knows more: what autoscalers size. So some of those that may by their spec stay regular.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from extender.app.inspection.reading import Reader
from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import ALLOWED, NEVER, ONLY
from extender.control.opportunistic.demotion import part
from extender.control.opportunistic.eligibility import Ineligible, Surroundings, evictions_left, why_not
from extender.explain.findings import Eligible

Jobs = Mapping[str, Mapping[str, Any]]
"""Jobs as the API server has them, by UID."""


def eligible_pods(reader: Reader, pods: Sequence[Pod], jobs: Sequence[Mapping[str, Any]]) -> Eligible:
    """Return how many of the held pods may be made opportunistic, or never are regular; pods are listed once more."""
    waiting = [pod for pod in pods if pod.held and pod.waits]
    held = {pod.uid: pod for pod in waiting if not pod.opportunistic}
    only = [pod for pod in waiting if pod.choice == ONLY]
    gangs = sum(bool(pod.identity.group) for pod in only)
    exposed = Counter(pod.owner for pod in pods if pod.opportunistic and not pod.finished)
    by_uid = {job["metadata"]["uid"]: job for job in jobs}
    reasons = Counter({Ineligible.GANG.value: gangs} if gangs else {})
    eligible = len(only) - gangs
    for raw in reader.objects("pods", "/api/v1/pods") if held else ():
        pod = held.get(part(raw, "metadata").get("uid", ""))
        if pod is None:
            continue
        reason = why_not(raw, _surroundings(pod, raw, by_uid, exposed[pod.owner]))
        if reason is None:
            eligible += 1
        else:
            reasons[reason.value] += 1
    return Eligible(eligible, dict(reasons.most_common()))


def _surroundings(pod: Pod, raw: Mapping[str, Any], jobs: Jobs, exposed: int) -> Surroundings:
    """Return what is known of a pod beside its spec; of a Job that was not read, that its pods may be evicted."""
    job = jobs.get(pod.owner)
    left = None if job is None else evictions_left(job, raw, exposed=exposed)
    return Surroundings(
        opted_in=pod.tenant_choice == ALLOWED,
        opted_out=pod.tenant_choice == NEVER,
        gang=bool(pod.identity.group),
        evictions_left=left,
    )

"""The planner's tuning that settings state: the same for `serve`, `control` and the simulator."""

import math

from extender.planner import Policy
from extender.settings import Settings


def policy_of(settings: Settings) -> Policy:
    """Return the planner's tuning that settings state."""
    policy, locality = settings.policy, settings.locality
    return Policy(
        rule=policy.rule,
        srtf=policy.srtf,
        rank=policy.rank,
        sharing=policy.sharing,
        kappa=policy.kappa,
        fairness=policy.fairness,
        barrier=policy.barrier,
        starved_after=policy.starved_after_seconds,
        reservable=policy.reservable,
        remote_penalty=locality.remote_penalty,
        locality_waits=locality.wait_seconds,
        long_task=locality.long_task_seconds or math.inf,
    )

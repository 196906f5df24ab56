"""A Snapshot, what waits, and a time in; which waiting tasks go where, and why others are held, out.

Joins `cluster` (what there is) and `policy` (what is good). Pure: the control loops and the simulator call this.
"""

from extender.planner.locality.between import farthest, pass_over, start, wait_now
from extender.planner.plan import (
    HELD_KINDS,
    Assignments,
    Carried,
    HeldKind,
    LocalityWait,
    Near,
    Plan,
    Scheduler,
    Terms,
    WaitLeft,
    WaitReason,
)
from extender.planner.planning import Planner, plan_once
from extender.planner.terms import Rating, alignments, owed_to_jobs, ratings
from extender.planner.tuning import Policy

__all__ = [
    "HELD_KINDS",
    "Assignments",
    "Carried",
    "HeldKind",
    "LocalityWait",
    "Near",
    "Plan",
    "Planner",
    "Policy",
    "Rating",
    "Scheduler",
    "Terms",
    "WaitLeft",
    "WaitReason",
    "alignments",
    "farthest",
    "owed_to_jobs",
    "pass_over",
    "plan_once",
    "ratings",
    "start",
    "wait_now",
]

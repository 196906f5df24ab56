"""A Snapshot, what waits, and a time in; which waiting tasks go where, and why others are held, out.

Joins `cluster` (what there is) and `policy` (what is good). Pure: the control loops and the simulator call this.
"""

from extender.planner.gangs import Places, most_if_empty
from extender.planner.locality.attainable import attainable
from extender.planner.locality.locality_waits import farthest, pass_over, start, wait_now
from extender.planner.plan import (
    HELD_KINDS,
    Assignments,
    Carried,
    HeldKind,
    LocalityWait,
    Near,
    Plan,
    Rating,
    Scheduler,
    WaitLeft,
    WaitReason,
)
from extender.planner.planning import Planner, plan_once
from extender.planner.ratings import alignments, dag_rank, owed_to_jobs, ratings
from extender.planner.reasons import CANNOT_READ, NONE_ALLOWS, SOURCES_ARE_BUSY
from extender.planner.terms import SCORE_TERMS, ScoreTerm, Terms
from extender.planner.tuning import Policy

__all__ = [
    "CANNOT_READ",
    "HELD_KINDS",
    "NONE_ALLOWS",
    "SCORE_TERMS",
    "SOURCES_ARE_BUSY",
    "Assignments",
    "Carried",
    "HeldKind",
    "LocalityWait",
    "Near",
    "Places",
    "Plan",
    "Planner",
    "Policy",
    "Rating",
    "Scheduler",
    "ScoreTerm",
    "Terms",
    "WaitLeft",
    "WaitReason",
    "alignments",
    "attainable",
    "dag_rank",
    "farthest",
    "most_if_empty",
    "owed_to_jobs",
    "pass_over",
    "plan_once",
    "ratings",
    "start",
    "wait_now",
]

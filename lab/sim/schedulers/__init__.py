"""The schedulers of a replay, by name in `policies.py`: the planner, baselines, and wrappers that show a planner less.

Belongs here: whatever implements `planner.Scheduler` for comparison. A scheduler sees a snapshot and what waits, and
returns a plan; it never sees the engine. Never here: a copy of the planner's policy.
"""

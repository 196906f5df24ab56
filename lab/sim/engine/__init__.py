"""The engine of a replay: the clock, the backlog, the running tasks on their machines, and what is measured.

Belongs here: everything that happens in simulated time whoever schedules. Never here: a choice between tasks or
machines (`schedulers`, or the planner), or where a workload is from (`workloads`). `world.py` puts the parts together.
"""

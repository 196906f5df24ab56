"""Who schedules a replay: the planner's policies, and the baselines that they are compared with."""

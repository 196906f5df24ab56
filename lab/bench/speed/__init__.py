"""How fast the verbs, the planner and the simulator are."""

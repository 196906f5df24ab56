"""The UBIS paper's evaluation again (5), in the simulator: opportunistic tasks on what is reserved and not used.

Belongs here: its jobs, which runs, and what is compared. Decisions are the planner's and `lab.sim.opportunistic`'s.
The room `real` is not simulated: one scenario on a real control plane.
"""

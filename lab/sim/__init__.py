"""Workloads replayed in simulated time through the functions that the cluster runs; README.md has the steps.

Belongs here: the engine (clock and machines), workloads (generators and trace readers), the schedulers that we compare
with, what is measured and how it is reported. Never here: a copy of a policy; sockets; anything of `adapters`.
"""

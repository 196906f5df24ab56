"""Seeing the gain: one workload on a real control plane, by the stock scheduler and with Dovetail.

Belongs here: the workload, the simulated machines that slow down where they are over-allocated, one run, the figures of
two runs, and the report. Never here: a rule of placement. Both runs are placed by real kube-schedulers, and what they
are asked for and offered is what the service reads from the same annotations.
"""

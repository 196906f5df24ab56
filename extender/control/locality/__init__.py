"""Locality: how long jobs wait for a node near their input, by settings or from a target and the measured load.

Never here: the waits of one job (`planner` carries them), or how near a node is (`plan_input`).
"""

"""Tasks that use other than they were promised, over time, and run as regular or as opportunistic ones.

Belongs here: how such tasks share a machine, whom memory kills, and how their use is sampled. Never here: what a policy
makes of the samples. A run without profiles and without opportunistic tasks goes by `engine/running.py` alone.
"""

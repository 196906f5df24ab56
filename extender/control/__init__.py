"""Loops that act on a plan: release, wake, reclaim; and the way out (drain). README.md has the loop in numbered steps.

Belongs here: what follows from a plan for the pods of a cluster, and in which order it is written. Each loop reconciles
and can be killed at any moment. Never here: a formula of policy (planner), an HTTP request (the loops write through
ports that `app` fills with adapters).
"""

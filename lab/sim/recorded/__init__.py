"""A recording of a cluster (`dovetail record`) as a workload, and the policy that does what was done.

Belongs here: how recorded pods become jobs, what is left out of them, and by how much contention slowed them. Never
here: how a recording is written; a policy of ours.
"""

"""Preemption: takes back what opportunistic pods use as soon as a node's use says that others need it (UBIS, IV.C).

Which nodes are overloaded, whom to evict there, and where the evicted do not come back to for a while. The simulator
asks the same code. Evictions themselves go through the Eviction API, as those of reclaim do.
"""

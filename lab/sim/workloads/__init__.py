"""The workloads and machines that are replayed: drawn by a seed or read from traces, by the names that a user writes.

Belongs here: jobs, stages and machines as values, and everything that is drawn or read to make them. The same seed
makes the same workload. Never here: time that passes.
"""

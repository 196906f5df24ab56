"""The Delay Scheduling paper's evaluation (5): microbenchmarks, whole workloads, and the paper's numbers."""

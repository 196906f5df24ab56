"""What is replayed: workloads drawn by a seed or read from traces, and machines, by the names that a user writes."""

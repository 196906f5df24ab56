"""What the cluster is: nodes, pods, what is allocated where. Knows nothing of policy, does no I/O, has no clock."""

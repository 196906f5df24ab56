"""A whole real Kubernetes control plane on loopback, for tests and for trying Dovetail out.

Here belongs what builds the pinned programs, starts and stops them, and fills the cluster with simulated nodes
and pods. It knows nothing of scheduling: it imports no other room but `extender.errors`, and no other room but
the command line and the experiments imports it.
"""

"""A cluster to try Dovetail on: a real control plane on loopback, with Dovetail in it, until Ctrl-C.

Belongs here: what the playground consists of (nodes, queues, settings), its examples, and its commands. Never here: how
the control plane is built and started (`controlplane`), or what a command of the service says.
"""

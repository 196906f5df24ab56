"""How Dovetail is proved: simulator, experiments, benchmarks, demo, and a control plane on loopback.

May import the service, never the reverse. The service's wheel and image carry none of it.
"""

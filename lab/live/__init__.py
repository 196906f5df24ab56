"""Pods on a real control plane whose machines are simulated: they are followed, and ended when their work is done.

Belongs here: what every workload on such a cluster needs, whatever it is and whoever schedules it. Never here: how fast
pods work (`Machinery`), nor what is measured.
"""

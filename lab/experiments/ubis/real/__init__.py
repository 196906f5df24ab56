"""Opportunistic pods on a real control plane with a real Prometheus: one scenario in phases, and what came of it.

Belongs here: the cluster (`plane`), what happens on it (`phases`, `outages`, `kills`), what is written down of it
(`recording`, by a watch of its own, the API server's audit log, and Prometheus' raw samples), and what is counted from
that (`evictions`, `figures`). Never here: anything of ours that decides; the service runs as it is shipped.
"""

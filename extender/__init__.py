"""Dovetail: a Kubernetes scheduler extender that packs pods by all their resources.

Arrows point one way, as docs/concepts/architecture.md has them; import contracts check it.
"""

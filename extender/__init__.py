"""Dovetail: a Kubernetes scheduler extender that packs pods by all their resources.

Arrows point one way: cli -> app -> adapters -> verdict -> policy | cluster -> errors.
"""

"""Metrics: what our processes export, and how they are read from outside."""

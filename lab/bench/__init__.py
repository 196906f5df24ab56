"""Measurements that can be repeated: how well pods are placed, how fast the verbs are.

Belongs here: readers of workload traces, replays, timings, and the tables that show them. Never
here: a formula of placement. What is measured is what the service runs (`verdict`, `adapters`),
so a benchmark that has its own copy of a decision measures nothing.
"""

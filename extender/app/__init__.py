"""The only composition root: settings in, a wired service out.

Belongs here: which adapter feeds which room, threads, signals, how a process starts and ends. Never here: a decision.
"""

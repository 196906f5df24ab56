"""Opportunistic tasks in a simulated cluster: when they start, become regular, and are evicted.

Belongs here: what asks the service's own functions and carries out what they say. Never here: a rule of its own.
"""

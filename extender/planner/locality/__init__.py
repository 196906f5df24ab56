"""Delay Scheduling while a plan is made: who waits for a node near its input, and what reading from elsewhere costs."""

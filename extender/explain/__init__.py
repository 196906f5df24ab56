"""What becomes of pods, queues and the installation, in words: for `explain`, `queues`, `doctor`, events and metrics.

Reads the backlog and makes plans as `control` does; never writes and never decides.
"""

"""Queues: the tree that settings declare, what each has and should have, and who is passed over.

What a queue has is one figure, for the plan, for reclaim, and for whoever asks (`usage`).
"""

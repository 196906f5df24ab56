"""Reclaim: queues that have waited below their share get room back, by evictions.

`loop` decides that some queue has waited for too long, `victims` who is evicted for it, `evictions` follows each until
its pod has its node.
"""

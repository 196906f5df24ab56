"""Reclaim: queues that have waited below their share get room back, by evictions.

`loop` decides which queue has waited for too long, `lines` which of its pods are next, `victims` who is evicted for
them (of `running_pods`, by what `losers` may lose), `evictions` follows each until its pod has its node
(`control.eviction_requests` asks for them), `trials` says for which shapes they are worth a try.
"""

"""Reclaim: queues that have waited below their share get room back, by evictions.

1. `loop` finds the queues that have waited for too long.
2. `lines` says which of their pods are next, `trials` for which shapes evictions are worth a try.
3. `victims` chooses who is evicted for a pod: of `running_pods`, and by what each queue may lose (`losers`).
4. `evictions` follows each eviction until its pod has its node; `control.eviction_requests` asks for them.
"""

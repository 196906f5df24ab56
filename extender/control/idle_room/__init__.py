"""Idle room: what regular pods have reserved and do not use, as far as that was measured (UBIS, IV).

`measured_use` puts what was measured on a snapshot's rows, `learned_use` knows what classes use (`class_use`), and
`starting` adds regular pods that began lately. `room` takes all that off T_alloc, or goes by the peaks of `predicted`,
whose margin follows `eviction_budget`. Nothing here starts or evicts a pod; who does asks here.
"""

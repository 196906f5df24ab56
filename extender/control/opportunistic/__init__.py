"""Opportunistic pods: which may be, how a pod becomes one and regular again, and what room there is for them.

Room is what regular pods have reserved and do not use, as far as that was measured (UBIS, IV). A step of the release
loop asks `promises` what became of promised room, then `promotion`, and after its plan `second_pass`: that puts
`measured_use` on the snapshot's rows, adds what is `starting`, takes `idle_room` of it, and plans. The writers ask
`resizing`: it asks `eligibility` and `exposure`, and makes the patches of `demotion`.
"""

"""Opportunistic pods: which may be, how a pod becomes one and regular again.

A step of the release loop asks `promises` what became of promised room, then `promotion`, and after its plan
`second_pass`, which plans on idle room. The writers ask `resizing`: it asks `eligibility` and `exposure`, and makes the
patches of `demotion`.
"""

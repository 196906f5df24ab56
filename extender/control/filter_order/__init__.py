"""Order without gates: `filter` answers from the same plan, refuses pods whose turn it is not, and others get woken.

`order` answers kube-scheduler in the extender's process; `waking` runs in the leader's, with its release loop.
"""

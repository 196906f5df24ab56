"""The release loop: plans over all that waits, nominates and releases the pods whose turn it is, tidies up.

`loop` is the step from beginning to end. Its parts: `recover` (what was left undone), `slots` (how many more may go),
`refusals` (shapes that kube-scheduler refuses), `unanswered` (pods of which it says nothing), `planned` (which pods of
a plan go), `room_for_all` (who goes without a plan), `without_node` (who is released to no node, to preempt or to have
nodes added), `sending` (the writes), `write_order` (their order), `node_room` (whether a node still has room).
"""

"""Whether new pods are held (`order: auto`): while somebody waits for room, and not otherwise.

`Holding` decides (`decision.py`), by what each plan leaves waiting (`room_wanted.py`). `HoldKeeper`, in `dovetail
control`, makes the cluster's Hold say so (`keeper.py`), and the admission policy reads that. `HoldEnder`, in `dovetail
serve`, ends it where no `control` is left to release pods (`ender.py`).

Nothing here releases, refuses or places a pod: a pod with the gate and one without are right at any time.
"""

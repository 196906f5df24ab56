"""The one mutable ledger: which pod holds what where, who is on the way to a node; and snapshots of it.

An event goes to `Ledger`, which has the lock. `Reckoning` (`cluster/pods`) says how its pods count. `Books` takes them
in: who holds which node (`NodeHolders`), what that is (`Allocated`), who is in flight (`Flights`). `Takeoffs` decides
who flies and until when, with `Unseen` for pods that no watch has shown. `Books` makes the `Snapshot`, whose rows and
columns are those of the `Layout`.
"""

"""The one mutable ledger: which pod holds what where, who is on the way to a node; and snapshots of it."""

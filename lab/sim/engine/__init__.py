"""The clock of a replay, the machines and tasks on it, and what is measured on the way."""

"""How long jobs wait for a node near their input: as settings say, or from a target and what was measured."""

"""How fast pods get onto a real cluster."""

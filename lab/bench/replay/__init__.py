"""How close a simulated run comes to one that was recorded."""

"""What a pod is, by what it says of itself: its demand, whose it is, what it reads and prefers; each within limits."""

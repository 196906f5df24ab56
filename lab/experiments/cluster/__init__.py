"""One workload on a real control plane and in the simulator, side by side."""

"""The order on deep and aged backlogs, in the simulator and on a real control plane."""

"""One workload on a real control plane and in the simulator, side by side.

`workload.py` draws it, `run.py` runs it once, `rounds.py` runs all contenders for one seed, `tables.py` shows the
result. On the control plane `pod_run.py` moves the simulated machines by the wall clock; in the simulator
`simulated_control.py` plans through the same pods. Never here: a policy of its own.
"""

"""The Delay Scheduling paper's evaluation (5): microbenchmarks, whole workloads, and the paper's numbers.

`parts.py` lists the parts; `micro.py` and `macro.py` say what each part runs and compares; `runs.py` is one run;
`scans.py` has the clusters and jobs, `scales.py` the sizes. Never here: a scheduler; contenders are made of `sim`'s.
"""

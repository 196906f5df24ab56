"""Tetris's evaluation (5): what is varied, what is compared with what, and the paper's numbers beside ours.

`parts.py` lists the parts. A part is a comparison (`comparison.py`, with the paper's numbers in `claims.py`) or a sweep
over one value (`sweeps.py`); `runs.py` is one run, `gains.py` compares two. Never here: a policy or a way to run.
"""

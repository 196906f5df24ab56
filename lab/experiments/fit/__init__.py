"""Choosing what the Tetris paper does not publish, in the open: by what it does publish about its baselines.

`published.py` has the paper's tables; `targets.py` says which values are free, and which cells of a table a run of the
baselines gives; `search.py` looks for values that meet them; `frozen.py` writes down how the result came about. Never
here: a run of our planner. What it gains must not count when conditions are chosen.
"""

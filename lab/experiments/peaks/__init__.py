"""Predictors of a node's peak use on SURF's jobs: how often they are passed, and how much room they find.

`trace.py` reads the jobs, `placing.py` packs them on nodes by request, `predictors.py` has who is asked, `replay.py`
is one run (predictions as time goes on, and what becomes of pods that are packed on top), `parts.py` what is compared,
`scales.py` the sizes. Never here: a formula of a prediction, of room or of whom to evict; these are `policy`'s.
"""

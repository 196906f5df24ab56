"""The papers' experiments again: which runs, what is compared with what, and the paper's number beside ours.

Belongs here: grids of runs, what a row of the result means, the tables and figures that show it. In this folder itself:
what all experiments share (sections, seeds, tables, page). Never here: a way to run or to schedule; a run is `sim`'s, a
decision `planner`'s, and a number that only this room could compute is suspect.
"""

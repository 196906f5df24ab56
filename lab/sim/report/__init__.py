"""Reports of outcomes for people: tables, plots, a page.

Belongs here: comparing outcomes of one workload, and showing them. Never here: anything that is measured during a run.
"""

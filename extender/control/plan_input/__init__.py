"""The planner's input, as arrays: made anew for each plan, from what waits and runs and what nodes say of themselves.

Decides nothing. Whoever plans (the release loop, filter's order, `explain`) has its input from `builder`, which takes
the rows of classes from `class_rows`, those of jobs from `job_rows`, what runs from `running`, and which nodes pods may
and would rather use from `allowed_nodes` and `preferred_nodes`.
"""

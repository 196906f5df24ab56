"""The planner's arrays of a backlog: made anew for each plan, from what waits and what nodes say of themselves.

Decides nothing. Whoever plans (the release loop, filter's order, whoever explains) makes its input here.
"""

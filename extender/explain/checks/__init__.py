"""Doctor's checks by topic: each takes the facts and yields one finding or several.

A finding is fine, a warning, or a problem, and says what to do. What could not be read is a warning that says how to
find out; it is never taken for fine. `doctor.CHECKS` lists them in the order in which they are asked.
"""

"""A user's own workload and machines, read from files.

Belongs here: the formats (`format.py`, from which the JSON Schemas come), and what makes jobs and machines of lines.
Every error names the file, the line, the field and what is accepted, and nothing is replayed of a file with an error.
Never here: time that passes, or what is drawn.
"""

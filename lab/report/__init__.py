"""What people get to see of a measurement, however it was made.

Belongs here: a figure and its place in JSON, the HTML page that loads nothing, how plots are drawn, how far runs are.
Never here: what is measured, nor what it means. matplotlib and rich are an extra: they are imported only by the modules
that draw, which nobody imports until something is to be drawn.
"""

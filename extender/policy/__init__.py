"""Decisions as arithmetic: arrays with stated shapes go in, arrays come out.

Belongs here: which node suits a pod, which task comes next, what may be taken back, as numpy
functions over nodes [N], task classes [C] and dimensions [R]. Never here: clocks, logs, names,
I/O, settings files, Kubernetes types, or anything of `cluster`; callers join the two.
No argument is mutated and no function loops over nodes.
"""

"""Jobs as DAGs for `extender.graph`: from workload files and traces, and what comes of it as text or JSON.

Belongs here: what `dovetail graph` reads and shows. Never here: orders and bounds, which are the service's.
"""

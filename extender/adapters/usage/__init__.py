"""What nodes and pods use, as somebody else measured it: Prometheus, else the API `metrics.k8s.io`.

The pipeline: `templates` and `queries` say what is asked, `access` asks, `decoding` reads the answers, `matching` finds
whose each series is, `trust` sorts out what cannot be believed, `prometheus` and `metrics_api` are one look each by
these steps, `reading` looks every interval and keeps the last look. `report` is what doctor is told of it.

Whatever is doubtful is left out with its reason, and never read as idle. What is done with the use is not known here.
"""

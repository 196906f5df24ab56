"""The user's commands that look at a cluster once: `explain`, `queues`, `doctor`, `locality`, and `drain`.

A `query` names the cluster; `reading` reads it and plans; `checks`, `known_waits` and `measured` ask our processes what
only they know, `our_pods` through the API server; `eligible` and `known_preemptions` read what few answers need;
`answers` asks `explain`; `tables`, `pod_text` and `page` print.
"""

"""kube-scheduler's verbs over HTTP, with health. One file per verb: decode, ask `verdict`, encode.

A request passes `server` and `listening` (connections), `routes` (errors become replies), its verb (`filter`,
`prioritize`, `preempt`) and `wire` (its JSON). `request_context` and `judging` hold what the verbs share; `event_wait`
and `refused` decide whether a refused pod waits for the next event. `health` and `wait_report` are what `control`
serves.
"""

"""The pods that the watches report, by queue, job and task class: what waits, what runs and what is still to come.

Nothing here decides anything. It is a cache: a new process has all of it again from the API server, but for the
durations that were learned. A reader finds

- `task_classes`: jobs, task classes, and the phases that a pod goes through;
- `backlog`: events in, and each pod to its place;
- `pods`: where each pod is, and all questions about that;
- `job_table`: which class a pod counts in, and when jobs arrived;
- `owners`: the workloads that own pods;
- `pod_groups`, `gangs`: the groups that pods are part of, and which of them have still to start together;
- `pending_writes`: which pods are being written to;
- `tenancy`, `volumes`: which queue a pod counts in, and where its volumes are;
- `feeding`: one event to the ledger and the backlog.
"""

"""What waits, what runs and what is still to come: pods by task class, job and queue, as the watches tell of them.

Owners, pod groups, volumes, and who may use which queue belong here, and which pods are being written to. Nothing here
decides anything. It is a cache: all of it comes back from the API server after a restart, but for learned durations.
"""

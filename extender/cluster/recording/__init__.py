"""What a cluster did, as lines of a file: events of a watch go in, lines come out. Pure.

Belongs here: the lines of a recording, which pods and nodes they are written for and when, pseudonyms, and what a file
says of its own past. Never here: reading a cluster, writing a file; what would have been (the laboratory's simulator).

1. `adapters.kube.observed` turns what the API server sends into events with their times.
2. `recorder.ClusterRecorder` keeps the pods that live. It yields a line for a pod when it ends, and forgets it.
3. `pseudonyms` takes the names out, where that was asked for.
4. `past` reads where a file stopped, so that a recording goes on in it.
"""

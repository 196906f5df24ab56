"""The only room that touches the outside: kube-scheduler's requests, the API server, metrics.

Each module decodes, calls something pure, and encodes. Client exceptions become ours here.
"""

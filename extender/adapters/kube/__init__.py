"""The API server: lists and watches into events, writes, Leases, and Kubernetes' objects as our structs."""

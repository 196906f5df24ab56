"""How well pods are placed: how much of a cluster each ranking rule fills."""

"""The tree of queues, and what each queue has of the cluster beside what it should have.

Decides nothing. Here is the one formula of a queue's share (`usage`), its fair share and minimum (`tree`), where
queues stand for reclaim (`standings`), and whether a promise was broken (`passed_over`). It reads `backlog` alone.
"""

"""Whose turn it is: priorities, then queues, inside a queue who is due, then its jobs (docs/concepts/turns.md)."""

"""A Lease: by which one of several replicas leads."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """A Lease as it is: its holder (empty: nobody), how long it lasts, what identifies this very state of it."""

    holder: str
    seconds: float
    version: str
    transitions: int = 0

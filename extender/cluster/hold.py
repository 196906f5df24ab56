"""A Hold: the one object of an installation that says whether pods that are created now get our gate."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hold:
    """Whether new pods are `held`, and why, in words; `version` identifies this very state of the object."""

    held: bool
    why: str = ""
    version: str = ""

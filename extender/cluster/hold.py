"""A Hold: the one object of an installation that says whether pods that are created now get our gate."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Hold:
    """Whether new pods are `held`, and why, in words; `version` identifies this very state of the object.

    `since` is when that was written, in seconds since the epoch; None: it does not say.
    """

    held: bool
    why: str = ""
    version: str = ""
    since: float | None = field(default=None, compare=False)

"""Where a recording stopped, by its own lines, so that it can go on in the same file."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from extender.cluster.recording.lines import (
    Begin,
    Checkpoint,
    Gap,
    NodeGoneLine,
    NodeLine,
    PodLine,
    decoded,
    placed,
)
from extender.errors import TraceError

_RECENT_SECONDS = 2.0
"""Kubernetes writes times in whole seconds: of pods that ended in the last of them one cannot tell by the time."""


@dataclass(frozen=True, slots=True)
class Past:
    """All was seen until then (None: there is nothing before), with these nodes and pods; `recent` had just ended."""

    until: float | None = None
    nodes: tuple[NodeLine, ...] = ()
    pods: tuple[PodLine, ...] = ()
    recent: frozenset[str] = frozenset()


NOTHING = Past()


def past_of(lines: Iterable[bytes], file: str) -> Past:
    """Return where a recording stopped; holds no more of it than its last checkpoint.

    Raises TraceError, with file and line, for what is no recording, and for one whose names are pseudonyms: the key of
    those was not kept.
    """
    until: float | None = None
    nodes: dict[str, NodeLine] = {}
    pods: dict[str, PodLine] = {}
    ends: deque[tuple[float, str]] = deque()
    begun = False
    for where, text in placed(lines, file):
        line = decoded(text, where)
        begun = begun or isinstance(line, Begin)
        if not begun:
            raise TraceError(f"{where}: a recording begins with a line of the kind begin")
        match line:
            case Begin(anonymous=True):
                raise TraceError(
                    f"{where}: its names are pseudonyms, whose key was not kept; accepted: a recording with plain "
                    "names, or a file that is not there yet"
                )
            case Checkpoint():
                nodes = {node.name: node for node in line.nodes}
                pods = {pod.uid: pod for pod in line.pods}
            case NodeLine():
                nodes[line.name] = line
            case NodeGoneLine():
                nodes.pop(line.name, None)
            case PodLine():
                pods.pop(line.uid, None)
        at = _until(line)
        until = at if until is None or (at is not None and at > until) else until
        if isinstance(line, PodLine) and line.ended is not None:
            ends.append((line.ended, line.uid))
        while ends and until is not None and ends[0][0] < until - _RECENT_SECONDS:
            ends.popleft()
    return Past(until, tuple(nodes.values()), tuple(pods.values()), frozenset(uid for _, uid in ends))


def _until(line: object) -> float | None:
    """Return until when all had been seen when the line was written, as far as it says."""
    if isinstance(line, PodLine):
        return None  # its end may be told by another clock
    return line.until if isinstance(line, Gap) else getattr(line, "at", None)

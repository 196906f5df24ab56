"""What `control` wrote to pods, as the API server wrote it down."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

EVICTION = "eviction"
_OK, _NOT_NOW = 300, 429


@dataclass(frozen=True, slots=True)
class Write:
    """A write to a pod at a time: its verb and subresource, and the status of the answer."""

    at: float
    pod: str
    verb: str
    subresource: str
    status: int

    @property
    def done(self) -> bool:
        """Whether the API server did it."""
        return self.status < _OK

    @property
    def eviction(self) -> bool:
        """Whether it asked for an eviction."""
        return self.subresource == EVICTION

    @property
    def forbidden(self) -> bool:
        """Whether a PodDisruptionBudget forbade it."""
        return self.eviction and self.status == _NOT_NOW


def read(lines: Iterable[str]) -> Iterator[Write]:
    """Return the writes of an audit log, in its order. A line that is not whole is left out."""
    for line in lines:
        if not line.endswith("\n"):
            continue
        event = json.loads(line)
        about = event["objectRef"]
        yield Write(
            datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
            about["name"],
            event["verb"],
            about.get("subresource", ""),
            event.get("responseStatus", {}).get("code", 0),
        )

"""The lines of a recording: JSON, one a line, told apart by `kind`. Times are seconds since the epoch."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, BinaryIO, Literal

import msgspec

from extender.cluster.eligibility import ANYWHERE, Constraints, Taint
from extender.cluster.model import Node
from extender.cluster.peers import ALONE, Peers
from extender.cluster.pods.preference import InputHolders
from extender.cluster.resources import LARGEST
from extender.errors import TraceError

FORMAT = 1
LONGEST_LINE = 2**28
"""The most bytes of a line: a checkpoint of 150,000 pods, as many as Kubernetes is made for, has some 80 MB."""

Resource = Literal["nodes", "pods"]
Outcome = Literal["", "succeeded", "failed", "deleted", "unseen"]
"""How a pod ended; "" while it lives. `unseen`: it went while nothing was seen, so nobody knows when."""
Time = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
"""Seconds since the epoch; no clock is further off than that."""


HOST_PORTS, POD_AFFINITY, SPREADING = "host-ports", "pod-affinity", "topology-spread"
"""What was not in a recording before `peers` was."""

NAMESPACE_SELECTORS, VOLUMES = "namespace-selectors", "volumes"
"""What may decide where a pod goes, and is not in a recording."""

PREFERRED, SPREAD_ANYWAY = "preferred-affinity", "schedule-anyway"
"""What kube-scheduler would rather have, and is not in a recording either."""


class Begin(msgspec.Struct, frozen=True, tag_field="kind", tag="begin"):
    """A recording begins, or goes on. `kubernetes` is the server's version."""

    at: Time
    kubernetes: str = ""
    anonymous: bool = False
    format: int = FORMAT


class Gap(msgspec.Struct, frozen=True, tag_field="kind", tag="gap", rename={"since": "from"}):
    """Of this kind nothing was seen in between: what came and went in that time is not in the file."""

    of: Resource
    since: Time
    until: Time


class Quiet(msgspec.Struct, frozen=True, tag_field="kind", tag="quiet"):
    """All was seen until then, and there was nothing to write."""

    at: Time


class End(msgspec.Struct, frozen=True, tag_field="kind", tag="end"):
    """The recording was ended by its user."""

    at: Time


class NodeLine(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="node"):
    """A node as it was from then on: new or changed. `offers` is what it has for pods; a rate not there is no limit."""

    at: Time
    name: str
    offers: Mapping[str, float]
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False

    def node(self) -> Node:
        """Return it as the service knows it."""
        return Node(self.name, self.offers, labels=self.labels, taints=self.taints, unschedulable=self.unschedulable)


class NodeGoneLine(msgspec.Struct, frozen=True, tag_field="kind", tag="node-gone"):
    """A node was removed."""

    at: Time
    name: str


class PodLine(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="pod"):
    """A pod, written when it ends; in a checkpoint, one that lives.

    `job` and `stage` are those that Dovetail plans by; `group` must start together, `least` of it. `owner` is the name
    of its controller. `declared` are the seconds that it says it runs. `ended` is None for one that lives, or that went
    unseen, which was `between` two times. `disrupted` is when it was told to go from outside: preempted, evicted, or as
    its node went. `peers` is what it asks of other pods; of `labels` there are those that some pod's selector looks at.
    `unwritten` are those of its constraints and preferences that are not in the file.
    """

    uid: str
    namespace: str
    name: str
    job: str
    queue: str
    demand: Mapping[str, float]
    created: Time
    bound: Time | None = None
    started: Time | None = None
    ended: Time | None = None
    node: str | None = None
    outcome: Outcome = ""
    between: tuple[Time, Time] | None = None
    disrupted: Time | None = None
    stage: str = ""
    group: str = ""
    least: int = 0
    owner: str = ""
    owner_kind: str = ""
    priority: int = 0
    scheduler: str = ""
    constraints: Constraints = ANYWHERE
    inputs: InputHolders = ()
    declared: float | None = None
    tasks: int | None = None
    opportunistic: bool = False
    may_run: str | None = None
    gated: bool = False
    unwritten: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    peers: Peers = ALONE


class Checkpoint(msgspec.Struct, frozen=True, tag_field="kind", tag="checkpoint"):
    """All nodes and all pods that have not ended, at one moment."""

    at: Time
    nodes: Sequence[NodeLine]
    pods: Sequence[PodLine]


Line = Begin | Gap | Quiet | End | NodeLine | NodeGoneLine | PodLine | Checkpoint

_decoder = msgspec.json.Decoder(Line)
_GZIP = b"\x1f\x8b"
BEGINNING = b'{"kind":"begin"'
"""What every recording begins with."""
_KINDS = "begin, gap, quiet, end, node, node-gone, pod, checkpoint"


def encoded(line: Line) -> bytes:
    """Return the line with its end."""
    return msgspec.json.encode(line) + b"\n"


def lines_in(stream: BinaryIO, file: str) -> Iterator[bytes]:
    """Yield each line of a file, the last perhaps without its end. Raises TraceError for one that no recording has."""
    number = 0
    while text := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(text) > LONGEST_LINE:
            raise TraceError(f"{file}, line {number}: longer than {LONGEST_LINE} bytes; accepted: at most as many")
        yield text


def refuse_gzip(where: str, text: bytes) -> None:
    """Raise TraceError where the beginning of a file is that of gzip."""
    if text.startswith(_GZIP):
        raise TraceError(f"{where}: this is gzip; accepted: the file that gunzip makes of it")


def placed(lines: Iterable[bytes], file: str) -> Iterator[tuple[str, bytes]]:
    """Yield where each line is, and the line; blank ones at the end are left out. Raises TraceError for gzip."""
    blank: tuple[str, bytes] | None = None
    for number, text in enumerate(lines, 1):
        where = f"{file}, line {number}"
        if number == 1:
            refuse_gzip(where, text)
        if not text.strip():
            blank = blank or (where, text)
            continue
        if blank is not None:
            yield blank
        yield where, text


def impossible(amounts: Mapping[str, float]) -> str:
    """Return the first amount that no cluster states, "" where there is none, with what is accepted."""
    wrong = (name for name, amount in amounts.items() if not (0 <= amount < LARGEST and amount % 1 == 0))
    return next((f"{name}: {amounts[name]:g}; accepted: whole, 0 or more, below 2**53" for name in wrong), "")


def decoded(text: bytes, where: str) -> Line:
    """Return the line. Raises TraceError, which says `where`, for what is none."""
    try:
        line: Line = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(f"{where}: {error}; accepted: one JSON object with a kind of {_KINDS}") from None
    if isinstance(line, Begin) and line.format != FORMAT:
        raise TraceError(f"{where}: format {line.format}; accepted: {FORMAT}, which this version of Dovetail writes")
    return line

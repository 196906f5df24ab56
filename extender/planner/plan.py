"""What a plan says, and what one plan hands to the next."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

import numpy as np

from extender.arrays import Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.waiting import Waiting
from extender.planner.terms import Terms, TermsLog, TermsRecord

HeldKind = Literal["no-nodes", "barred", "too-large", "gang", "locality", "no-room", "input", "reserved"]
HELD_KINDS: tuple[HeldKind, ...] = get_args(HeldKind)
"""All kinds of reasons: no nodes at all; none allows it, or is large enough; not all of its gang fits; it waits for
room near its input; none that allows it has enough free; what it reads cannot be read fast enough; what has room is
reserved."""


@dataclass(frozen=True, slots=True)
class Assignments:
    """Decisions in the order in which they were taken [A].

    `task_class` is a row of `Waiting`, `node` a row of the snapshot. `task` is the index into `Blocks` of the task that
    goes, -1 where any will do; `source` the node that it reads its block from (`node` itself if that has a copy; -1
    where the class has no blocks).
    """

    task_class: Rows
    node: Rows
    task: Rows
    source: Rows

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.task_class)


@dataclass(frozen=True, slots=True)
class Rating:
    """How a node rates for a class: score = alignment (already times `remote` and `order`) - `work`.

    `work` is all that the score terms take off together: eps x the job's remaining work, as long as it is the only one.
    """

    node: int
    score: float
    alignment: float
    remote: float
    work: float
    order: float


@dataclass(frozen=True, slots=True)
class LocalityWait:
    """How a job waits for locality: the level of its last start, and for how long it was passed over since.

    `seconds` are up to the plan that says so; of the time from there to the next plan at most `counts` seconds are
    added: 0 if it was not passed over, infinite if room that it could use stays empty.
    """

    level: int = 0
    seconds: float = 0.0
    counts: float = 0.0


@dataclass(frozen=True, slots=True)
class DueTime:
    """When a class that has waited `since` then is due; a start of it ends this, and it waits anew."""

    since: float
    due: float


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room that is kept for a class or gang: (class name, node name, tasks) each; it lapses after `until`.

    By the ends of what runs it should be there at `ready`.
    """

    room: tuple[tuple[str, str, int], ...]
    until: float
    ready: float = -np.inf

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes, by name."""
        return tuple(sorted({node for _, node, _ in self.room}))


@dataclass(frozen=True, slots=True)
class Lapse:
    """A reservation came to nothing: until `again_at` there is no other for the class, and `seconds` after the next."""

    again_at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Carried:
    """What one plan hands to the next. Losing it loses no task; docs/concepts/turns.md says what it can cost.

    By class name: when classes are `due`, what is `reserved` for them (for a gang by the name of its first class), what
    their queues are `owed` since they save for them (parts of the cluster times seconds), and which reservations have
    `lapsed`. `by_due` are the queues whose last start was of a class that was due. Waits for locality are by
    `Waiting.waits_as`; `planned_at` is when all that was.
    """

    reserved: Mapping[str, Reservation] = field(default_factory=dict)
    locality: Mapping[str, LocalityWait] = field(default_factory=dict)
    planned_at: float = 0.0
    due: Mapping[str, DueTime] = field(default_factory=dict)
    by_due: frozenset[str] = frozenset()
    owed: Mapping[str, float] = field(default_factory=dict)
    lapsed: Mapping[str, Lapse] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WaitLeft:
    """How far a class's wait for locality has got: `passed` of the `seconds` after which it may start `beyond` a level.

    Where room that it could use stays empty (`stays`) it goes on by itself, else only while others take such room.
    """

    beyond: str
    seconds: float
    passed: float
    stays: bool

    @property
    def left(self) -> float:
        """The seconds that are left of it."""
        return max(self.seconds - self.passed, 0.0)


@dataclass(frozen=True, slots=True)
class Near:
    """Which nodes tasks of a class wait for: those at most at this `level`.

    Nodes (rows) with room for them are not for them: `reserved` for others, or `crowded` by long tasks. `texts` say why
    each task of `Blocks` waits; there are none where all of the class wait for the same nodes.
    """

    level: int
    reserved: Sequence[int]
    crowded: Sequence[int]
    texts: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class WaitReason:
    """Why tasks of a class still wait: one of few kinds, and words that a user understands, those of its first task.

    `wait` and `near` are of those that wait for locality.
    """

    kind: HeldKind
    text: str
    wait: WaitLeft | None = None
    near: Near | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now; `terms` has one for each assignment (`terms.Terms`), none of a scheduler that knows no terms.

    `held` says why tasks of a class still wait, by its row; only where it was asked for.

    `again_at`: when to plan again even if nothing has happened, as somebody's wait for locality ends; infinite: never.
    `kept_idle` is the part of the cluster, by the resource of which it is most, that has room and is reserved.
    """

    assignments: Assignments
    terms: Sequence[Terms] = ()
    held: Mapping[int, WaitReason] = field(default_factory=dict)
    carried: Carried = field(default_factory=Carried)
    again_at: float = math.inf
    kept_idle: float = 0.0


class Taken:
    """The assignments of a plan on its way, in the order in which they are taken, and the terms of each."""

    def __init__(self) -> None:
        self._pairs: list[tuple[int, int, int, int]] = []
        self._terms: list[TermsRecord] = []

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._pairs)

    def add(self, pair: tuple[int, int, int, int], terms: TermsRecord) -> None:
        """Add (task class, node, task, source) and why."""
        self._pairs.append(pair)
        self._terms.append(terms)

    def checkpoint(self) -> Callable[[], None]:
        """Return what takes back all that is added from now on."""
        so_far = len(self._pairs)

        def undo() -> None:
            del self._pairs[so_far:], self._terms[so_far:]

        return undo

    def assignments(self) -> Assignments:
        """Return what was taken."""
        pairs = np.array(self._pairs, dtype=np.intp).reshape(-1, 4)
        return Assignments(pairs[:, 0], pairs[:, 1], pairs[:, 2], pairs[:, 3])

    def terms(self) -> Sequence[Terms]:
        """Return why, one for each."""
        return TermsLog(self._terms)


class Scheduler(Protocol):
    """Decides what goes where; the planner, and in the simulator those that it is compared with."""

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now, at `now` seconds. Never mutates its arguments."""

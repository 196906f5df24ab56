"""The tuning of the planner, checked."""

import math
from dataclasses import dataclass
from types import MappingProxyType

from extender.errors import SettingsError
from extender.policy import matching
from extender.policy.alignment import TASK_RULES

MACHINE, PAIR, BUNDLE = "machine", "pair", "bundle"
MATCHINGS = MappingProxyType(
    {MACHINE: matching.machine_at_a_time, PAIR: matching.best_pair, BUNDLE: matching.machine_at_a_time}
)
DRF, SLOTS = "drf", "slots"


@dataclass(frozen=True, slots=True)
class Policy:
    """The tuning of the planner; the papers' defaults (Tetris 3.2 to 3.5, Graphene 5.1) but for `matching`, measured.

    Matching and score:

    - `matching`: `machine` fills one node at a time, `pair` takes the best of all pairs. `bundle` fills one node at a
      time, first with a set of tasks that is chosen as a whole (policy.bundling); as `machine` where jobs wait for
      locality.
    - `rule`: of alignment.TASK_RULES. `packing` False: nothing but remaining work counts.
    - `srtf` m: how much remaining work counts against alignment (eps = m x mean alignment / mean work); 0: not at all.
    - `rank`: how much the order of a job's DAG counts (policy.dag_order), in [0, 1]; 0: not at all.

    Between jobs and queues:

    - `sharing`: the unit in which turns are counted, `drf` (the dominant share) or `slots` (memory).
    - `kappa`: a job may have a start while it is at most this part of the cluster ahead of the job of its queue that
      has least by its weight; 0: that one only, 1: all may. `queue_kappa` is the same between queues.
    - `fairness` f in [0, 1) leaves out that part of the jobs that have most.
    - `barrier` b: once this part of a stage has finished, its last tasks go first; 1: none do.
    - `tail`: a job goes before others if its longest chain of stages takes at least this part of the time for which all
      that is left keeps the cluster busy (policy.critical). Jobs so small that together they are at most the part
      `small` of all work go before it. Few long tasks that take as long as all that is left go before these. Infinite:
      none go first.
    - `starved_after`: after so many seconds without a start a class gets a due time (fairness.due_times). From then on
      it goes first in every second start of its queue. Room for a class that is due and fits nowhere is reserved: at
      most the part `reservable` of the cluster, or what one class or gang needs (fairness.reservations).

    Disks and links:

    - `headroom`: the part of a disk and of a link that tasks reading on their own node leave to shuffles that wait.
      Without it one full node of many holds up every shuffle that reads there.
    - `source_excess`: a shuffle may start while the links that it reads from are promised at most this part beyond what
      they have, or much more where it takes little of them (locality.sources). Little over-allocation loses no goodput
      (Graphene, 5), and one full link of many does not hold up all.
    - `overbook`: the part beyond a node's disks and links that tasks may be promised there, where starting at once
      gains more than it costs all others (planner.overbooking; Graphene, 5); 0: none.

    Locality (Delay Scheduling):

    - `locality_waits`: for how many seconds a job may be passed over until it starts on the rack of its input, beyond
      that, ... and in the end anywhere; () for no waiting.
    - `pass_counts`: being passed over for others counts for at most so many seconds (infinite: until the next plan).
      Where room stays empty, all time counts.
    - `long_task`: tasks of at least so many seconds, or of unknown duration, stay away from nodes that run more than
      the mean number of such; infinite: none do.
    """

    matching: str = MACHINE
    rule: str = "dot"
    remote_penalty: float = 0.1
    srtf: float = 1.0
    rank: float = 1.0
    packing: bool = True
    sharing: str = DRF
    fairness: float = 0.25
    kappa: float = 1.0
    queue_kappa: float = 0.0
    barrier: float = 0.9
    headroom: float = 0.1
    source_excess: float = 0.2
    overbook: float = 0.0
    tail: float = 0.25
    small: float = 0.15
    locality_waits: tuple[float, ...] = ()
    pass_counts: float = 3.0
    long_task: float = math.inf
    starved_after: float = 120.0
    reservable: float = 0.05

    def __post_init__(self) -> None:
        for name, accepted in (
            ("matching", MATCHINGS),
            ("rule", TASK_RULES),
            ("sharing", (DRF, SLOTS)),
        ):
            if getattr(self, name) not in accepted:
                raise SettingsError(f"{name}: {getattr(self, name)!r}; accepted: {', '.join(accepted)}")
        for name, below in (
            ("fairness", 1.0),
            ("queue_kappa", 1.0),
            ("small", 1.0),
            ("remote_penalty", 1.0),
            ("headroom", 1.0),
            ("source_excess", 1.0),
            ("overbook", 1.0),
        ):
            if not 0 <= getattr(self, name) < below:
                raise SettingsError(f"{name}: {getattr(self, name)!r}; accepted: at least 0, below {below:g}")
        if not all(0 <= wait < math.inf for wait in self.locality_waits):
            raise SettingsError(f"locality_waits: {self.locality_waits!r}; accepted: seconds, each 0 or more")
        if not self.pass_counts > 0:
            raise SettingsError(f"pass_counts: {self.pass_counts!r}; accepted: seconds above 0")
        if not self.long_task > 0:
            raise SettingsError(f"long_task: {self.long_task!r}; accepted: seconds above 0, infinite for none")
        if not self.tail > 0:
            raise SettingsError(f"tail: {self.tail!r}; accepted: above 0, infinite for none")
        if not (self.srtf >= 0 and 0 < self.reservable <= 1):
            raise SettingsError(
                f"srtf: {self.srtf!r}, reservable: {self.reservable!r}; accepted: srtf 0 or more, "
                "reservable above 0, at most 1"
            )
        if not (0 <= self.barrier <= 1 and 0 <= self.rank <= 1 and 0 <= self.kappa <= 1):
            raise SettingsError(
                f"barrier: {self.barrier!r}, rank: {self.rank!r}, kappa: {self.kappa!r}; accepted: each 0 to 1"
            )

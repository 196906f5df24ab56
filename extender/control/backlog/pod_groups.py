"""Pod groups: how many pods of each start together, and how far each has got.

A group's name may come back: with each run of a CronJob, with each round of executors of one driver. So:

- Pods that ended well count as started for those that live at the same time, have the same owner, or have one that was
  there before they started. Those of an earlier run do not.
- A group that had its minimum once has it for as long as one of its pods stays on a node. Whoever comes then waits for
  no more pods than there are.
- What a plan gave a group is remembered as long as it has pods. What it needs beyond that is no part of that turn,
  whatever its pods, or the group, say later.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from extender.cluster.events import Event, GroupGone, GroupSeen, GroupsListed
from extender.cluster.model import Group, Pod
from extender.cluster.resources import Amounts, greatest
from extender.control.backlog.owners import Owners

_ROUNDING = 1.0 + 1e-9


class _Ended(NamedTuple):
    """A pod that ended well: whose it is, and when it started; 0: nobody knows."""

    owner: str
    started: float


@dataclass(slots=True)
class _Run:
    """The pods of a group by UID: those without a node or on their way out, those on nodes, those that ended well.

    Of the latter `earlier` ended before any of those lived, the first of which has the owner `begun_by`; they started
    at `starts`, which is sorted. `met` is the largest minimum that the group had started with. `granted` is what it had
    with the most that a plan gave it; None: it is older than this process, and what it asks for first counts.
    """

    owners: Owners
    waiting: set[str] = field(default_factory=set)
    on_nodes: set[str] = field(default_factory=set)
    ended: dict[str, _Ended] = field(default_factory=dict)
    earlier: dict[str, _Ended] = field(default_factory=dict)
    starts: list[float] = field(default_factory=list)
    begun_by: str = ""
    met: float = 0.0
    granted: Amounts | None = field(default_factory=dict)

    def put(self, pod: Pod, least: int) -> None:
        """Put a pod into its place; news of one of an earlier run changes nothing."""
        if pod.uid in self.earlier:
            return
        begins = not (self.waiting or self.on_nodes)
        self.remove(pod.uid)
        if pod.finished:
            if not pod.failed:
                self.ended[pod.uid] = _Ended(pod.owner, pod.started or 0.0)
            return
        if begins:
            self._begin(pod.owner)
        stays = pod.node is not None and not pod.leaving
        (self.on_nodes if stays else self.waiting).add(pod.uid)
        if stays and self.met < least <= len(self.on_nodes) + self.ended_well():
            self.met = least

    def ended_well(self) -> int:
        """Return how many pods count as started because they ended well."""
        owner = self.owners.by_uid.get(self.begun_by)
        since = owner.created if owner is not None and owner.created > 0 else math.inf
        return len(self.ended) + len(self.starts) - bisect_left(self.starts, since)

    def pods(self) -> int:
        """Return how many pods there are, with those that count as started because they ended well."""
        return len(self.waiting) + len(self.on_nodes) + self.ended_well()

    def remove(self, uid: str) -> None:
        """Take a pod out of its place."""
        self.waiting.discard(uid)
        self.on_nodes.discard(uid)
        self.ended.pop(uid, None)
        earlier = self.earlier.pop(uid, None)
        if earlier is not None:
            del self.starts[bisect_left(self.starts, earlier.started)]

    def _begin(self, owner: str) -> None:
        """Begin a new run, but for an owner that goes on."""
        all_ended, self.ended, self.earlier = {**self.earlier, **self.ended}, {}, {}
        for uid, ended in all_ended.items():
            (self.ended if owner and owner == ended.owner else self.earlier)[uid] = ended
        self.starts = sorted(ended.started for ended in self.earlier.values())
        self.begun_by = owner


class PodGroups:
    """Pod groups by name. Under the backlog's lock."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self.declared: dict[str, Group] = {}
        self._runs: dict[str, _Run] = {}
        self._group_of: dict[str, str] = {}
        self._granted: dict[str, Amounts] = {}

    def apply(self, event: Event) -> None:
        """Take in an event about groups; any other changes nothing."""
        match event:
            case GroupSeen(group):
                self.declared[group.name] = group
            case GroupGone(group):
                self.declared.pop(group.name, None)
            case GroupsListed(source, groups):
                self._list(source, groups)

    def least(self, pod: Pod) -> int:
        """Return how many pods of a pod's group must start together: by the group, else by what the pod says."""
        group = self.declared.get(pod.identity.group)
        return group.least if group is not None else pod.identity.least

    def ended(self, group: str) -> int:
        """Return how many pods of a group count as started because they ended well. They are not deleted yet."""
        run = self._runs.get(group)
        return run.ended_well() if run is not None else 0

    def has_met(self, group: str, least: int) -> bool:
        """Say whether so many pods of a group had started, and one of the group has stayed on a node since."""
        run = self._runs.get(group)
        return run is not None and run.met >= least

    def lacks_pods(self, pod: Pod) -> bool:
        """Say whether pods are missing of a pod's group, so that it cannot start; pods that are leaving count too."""
        run, least = self._runs.get(pod.identity.group), self.least(pod)
        return run is not None and run.met < least and run.pods() < least

    def note_turn(self, group: str, amounts: Amounts) -> None:
        """Note that a plan gave a group its turn: with that it has these amounts."""
        if group in self._runs:
            self._runs[group].granted = greatest((self._runs[group].granted or {}, amounts))

    def was_granted(self, group: str, amounts: Amounts) -> bool:
        """Say whether plans gave a group as much as this; of one older than this process the first answer is yes."""
        run = self._runs.get(group, _Run(self._owners))
        if run.granted is None:
            run.granted = amounts
        granted = run.granted
        return all(amount <= granted.get(name, 0.0) * _ROUNDING for name, amount in amounts.items())

    def see(self, pod: Pod) -> None:
        """Take note of a pod as it is now."""
        name = pod.identity.group
        if self._group_of.get(pod.uid, name) != name:
            self.lose(pod.uid)
        if name:
            self._group_of[pod.uid] = name
            self._runs.setdefault(name, _Run(self._owners)).put(pod, self.least(pod))
            self._settle(name)

    def lose(self, uid: str) -> None:
        """Forget a pod: it is gone, or takes no part."""
        name = self._group_of.pop(uid, "")
        if name in self._runs:
            self._runs[name].remove(uid)
        self._settle(name)

    def forget_pods(self) -> None:
        """Forget all pods: they are about to be listed."""
        self._granted = {name: run.granted for name, run in self._runs.items() if run.granted is not None}
        self._runs.clear()
        self._group_of.clear()

    def note_listed(self) -> None:
        """Take it that groups with a pod on a node had started whole: a list does not say what was before it."""
        for name, run in self._runs.items():
            run.granted = self._granted.get(name, None if run.on_nodes else {})
            if run.on_nodes:
                run.met = math.inf

    def _settle(self, name: str) -> None:
        """Forget of a group that a pod has left what holds no more."""
        run = self._runs.get(name)
        if run is None:
            return
        if not run.on_nodes:
            run.met = 0.0
        if not (run.waiting or run.on_nodes or run.ended or run.earlier):
            del self._runs[name]

    def _list(self, source: str, groups: Iterable[Group]) -> None:
        others = {name: group for name, group in self.declared.items() if group.source != source}
        self.declared = {**others, **{group.name: group for group in groups}}

"""What pods are part of: the workloads that own them, and the groups that start together."""

from collections import Counter
from collections.abc import Iterable

from extender.cluster.model import (
    Event,
    Group,
    GroupGone,
    GroupSeen,
    GroupsListed,
    Owner,
    OwnerGone,
    OwnerSeen,
    OwnersListed,
    Pod,
)


class Owners:
    """`owners` by UID, `groups` by name; under the backlog's lock."""

    def __init__(self) -> None:
        self.owners: dict[str, Owner] = {}
        self.groups: dict[str, Group] = {}
        self._ended: Counter[str] = Counter()
        self._ended_in: dict[str, str] = {}

    def apply(self, event: Event) -> None:
        """Take in news of owners and groups; other news is nothing to it."""
        match event:
            case OwnerSeen(owner):
                self.owners[owner.uid] = owner
            case OwnerGone(uid):
                self.owners.pop(uid, None)
            case OwnersListed(owners):
                self.owners = {owner.uid: owner for owner in owners}
            case GroupSeen(group):
                self.groups[group.name] = group
            case GroupGone(group):
                self.groups.pop(group.name, None)
            case GroupsListed(source, groups):
                self._list_groups(source, groups)

    def ended(self, group: str) -> int:
        """Return how many pods of a group have ended well and are still there."""
        return self._ended.get(group, 0)

    def note_end(self, pod: Pod) -> None:
        """Count a pod of a group, once, if it has ended well."""
        group = pod.identity.group
        if group and pod.finished and not pod.failed and pod.uid not in self._ended_in:
            self._ended_in[pod.uid] = group
            self._ended[group] += 1

    def forget_ends(self) -> None:
        """Count no ended pods: all that are there are about to be listed."""
        self._ended.clear()
        self._ended_in.clear()

    def lose(self, uid: str) -> None:
        """Count a pod no more, which is gone."""
        group = self._ended_in.pop(uid, None)
        if group is not None:
            self._ended[group] -= 1
            if not self._ended[group]:
                del self._ended[group]

    def _list_groups(self, source: str, groups: Iterable[Group]) -> None:
        others = {name: group for name, group in self.groups.items() if group.source != source}
        self.groups = {**others, **{group.name: group for group in groups}}

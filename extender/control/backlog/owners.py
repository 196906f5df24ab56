"""What pods are part of: the workloads that own them, and the pod groups that start together."""

from collections import Counter
from collections.abc import Iterable

from extender.cluster.events import Event, GroupGone, GroupSeen, GroupsListed, OwnerGone, OwnerSeen, OwnersListed
from extender.cluster.model import Group, Owner, Pod


class Owners:
    """Owners `by_uid`, and pod `groups` by name. Under the backlog's lock."""

    def __init__(self) -> None:
        self.by_uid: dict[str, Owner] = {}
        self.groups: dict[str, Group] = {}
        self._ended: Counter[str] = Counter()
        self._group_of_ended: dict[str, str] = {}

    def apply(self, event: Event) -> None:
        """Take in an event about owners or groups; any other changes nothing."""
        match event:
            case OwnerSeen(owner):
                self.by_uid[owner.uid] = owner
            case OwnerGone(uid):
                self.by_uid.pop(uid, None)
            case OwnersListed(owners):
                self.by_uid = {owner.uid: owner for owner in owners}
            case GroupSeen(group):
                self.groups[group.name] = group
            case GroupGone(group):
                self.groups.pop(group.name, None)
            case GroupsListed(source, groups):
                self._list_groups(source, groups)

    def least(self, pod: Pod) -> int:
        """Return how many pods of a pod's group must start together: by the group, else by what the pod says."""
        group = self.groups.get(pod.identity.group)
        return group.least if group is not None else pod.identity.least

    def ended(self, group: str) -> int:
        """Return how many pods of a group have ended well and are not deleted yet."""
        return self._ended.get(group, 0)

    def note_end(self, pod: Pod) -> None:
        """Count a pod of a group, once, if it has ended well."""
        group = pod.identity.group
        if group and pod.finished and not pod.failed and pod.uid not in self._group_of_ended:
            self._group_of_ended[pod.uid] = group
            self._ended[group] += 1

    def forget_ends(self) -> None:
        """Count no ended pods any more: all pods are about to be listed."""
        self._ended.clear()
        self._group_of_ended.clear()

    def lose(self, uid: str) -> None:
        """Count a deleted pod no more."""
        group = self._group_of_ended.pop(uid, None)
        if group is not None:
            self._ended[group] -= 1
            if not self._ended[group]:
                del self._ended[group]

    def _list_groups(self, source: str, groups: Iterable[Group]) -> None:
        others = {name: group for name, group in self.groups.items() if group.source != source}
        self.groups = {**others, **{group.name: group for group in groups}}

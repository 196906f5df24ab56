"""The workloads that own pods."""

from extender.cluster.events import Event, OwnerGone, OwnerSeen, OwnersListed
from extender.cluster.model import Owner


class Owners:
    """Owners `by_uid`. Under the backlog's lock."""

    def __init__(self) -> None:
        self.by_uid: dict[str, Owner] = {}

    def apply(self, event: Event) -> None:
        """Take in an event about owners; any other changes nothing."""
        match event:
            case OwnerSeen(owner):
                self.by_uid[owner.uid] = owner
            case OwnerGone(uid):
                self.by_uid.pop(uid, None)
            case OwnersListed(owners):
                self.by_uid = {owner.uid: owner for owner in owners}

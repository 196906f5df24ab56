"""Evictions as a scene's cluster makes them, and what is said and counted of them."""


class Evictions:
    """For a scene: who is evicted is gone at once, unless `slow`: then it is leaving. Nobody evicts the `protected`."""

    def __init__(self, *nodes, **more):
        self.evicted, self.events, self.counted = [], [], []
        self.protected, self.slow = set(), False
        super().__init__(*nodes, **more)

    def evict(self, victim):
        if victim.name in self.protected:
            return False
        self.evicted.append(victim.name)
        if self.slow:
            self.change(victim.name, leaving=True)
        else:
            self.remove(victim.name)
        return True

    def tell(self, victim, reason, message):
        self.events.append((victim.name, reason, message))

    def note_preemption(self, victim, resource, *, dry_run):
        self.counted.append((victim.name, resource, dry_run))

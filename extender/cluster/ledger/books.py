"""What the ledger counts: the pods on nodes, those nominated and those in flight, by the rows of the nodes there are.

A snapshot is made of these books. What it was given stays the same object until a change of the books drops it.
"""

from collections.abc import Callable, Mapping

from extender.arrays import Floats, read_only
from extender.cluster.ledger.allocated import Allocated
from extender.cluster.ledger.flights import Flight, Flights
from extender.cluster.ledger.layout import Layout, laid_out, layout_of
from extender.cluster.ledger.mix import DeviceAskers
from extender.cluster.ledger.node_holders import NodeHolders
from extender.cluster.ledger.snapshot import Nominations, OpportunisticPods, Snapshot, nominations_of
from extender.cluster.model import Node, Pod
from extender.cluster.resources import Amounts


class Books:
    """Nodes by name, pods by UID. The ledger's lock is held by who calls.

    `layout` may be older than the nodes until `lay_out`. `version` is another after each change that a snapshot shows.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.held = NodeHolders()
        self._askers = DeviceAskers()
        self.nominated: dict[str, Pod] = {}
        self.layout: Layout = layout_of({})
        self.flights = Flights(self.layout)
        self.allocated = Allocated(self.pods, self.held, self.layout)
        self.version = 0
        self._load: Mapping[str, Amounts] = {}
        self._layout_is_old = False
        self._copies: dict[str, Floats] = {}
        self._nominations: Nominations | None = None
        self._opportunistic = OpportunisticPods((), self.layout)
        self._opportunistic_changed: set[str] = set()

    def snapshot(self, *, assumed: int, heard: int) -> Snapshot:
        """Return what the books say now, with these counts of the ledger."""
        self.lay_out()
        if self._nominations is None:
            waiting = (pod for pod in self.nominated.values() if not pod.leaving and pod.uid not in self.flights)
            self._nominations = nominations_of(waiting, self.layout)
        if self._opportunistic_changed:
            opportunistic = self.held.opportunistic
            changes = {uid: self.pods[uid] if uid in opportunistic else None for uid in self._opportunistic_changed}
            self._opportunistic = self._opportunistic.after(changes)
            self._opportunistic_changed.clear()
        return Snapshot(
            version=self.version,
            assumed=assumed,
            heard=heard,
            layout=self.layout,
            allocated=self._kept("allocated", self._taken),
            in_flight=self._kept("in_flight", self.flights.total.copy),
            placed=self._kept("placed", self.flights.placed.copy),
            nominations=self._nominations,
            flights=len(self.flights),
            given=self._kept("given", lambda: self.allocated.given + self.flights.given),
            empty=self._kept("empty", lambda: self.layout.capacity - self.allocated.by_nodes_own),
            opportunistic=self._opportunistic,
            mix=self._askers.mix(self.layout.axis, self.layout.names, self.nodes),
        )

    # -- nodes

    def put_node(self, node: Node) -> None:
        """Take a node as it is now."""
        known = self.nodes.get(node.name)
        if known == node:
            return
        self.nodes[node.name] = node
        if known is None or laid_out(known) != laid_out(node):
            self._layout_is_old = True
        else:  # its labels, a hard taint or a cordon: of nodes that are not ready, say
            self._askers.forget_nodes()
        self._change()

    def remove_node(self, name: str) -> None:
        """Take note that a node is gone."""
        if self.nodes.pop(name, None) is not None:
            self._layout_is_old = True
            self._change()

    def put_load(self, load: Mapping[str, Amounts]) -> None:
        """Take what nodes, by name, use besides their pods: it counts as allocated."""
        if load != self._load:
            self._load = dict(load)
            self._change("allocated")

    def _taken(self) -> Floats:
        """Return what is allocated of each node [N, R], and what it uses besides its pods."""
        taken = self.allocated.amounts.copy()
        for name in self._load.keys() & self.layout.rows.keys():
            taken[self.layout.rows[name]] += self.layout.vector(self._load[name])
        return taken

    def lay_out(self) -> None:
        """Bring rows and columns up to date; what nodes that stay have allocated is carried over, not counted again."""
        if not self._layout_is_old:
            return
        self.layout, self._layout_is_old = layout_of(self.nodes), False
        before, after = self.allocated.lay_out(self.layout)
        self.flights.lay_out(self.layout, before, after)
        self._copies.clear()
        self._nominations = None
        self._opportunistic = OpportunisticPods((), self.layout)
        self._opportunistic_changed = set(self.held.opportunistic)

    # -- pods

    def put_pod(self, pod: Pod) -> Pod | None:
        """Take a pod as it is now. Returns what was known of it before."""
        known = self.pods.get(pod.uid)
        self.pods[pod.uid] = pod
        if known is None or _holding(known) != _holding(pod):
            self._release(known)
            self._hold(pod)
        elif pod.opportunistic:
            self._opportunistic_changed.add(pod.uid)
        self._nominate(pod)
        return known

    def remove_pod(self, uid: str) -> None:
        """Take note that a pod is gone."""
        self._release(self.pods.pop(uid, None))
        if self.nominated.pop(uid, None) is not None:
            self._nominations = None
            self._change()

    def _hold(self, pod: Pod) -> None:
        if pod.holds is not None:
            self.held.add(pod, pod.holds)
            self._askers.add(pod, 1)
            self._charge(pod, 1.0)

    def _release(self, pod: Pod | None) -> None:
        if pod is not None and pod.holds is not None:
            self._charge(pod, -1.0)
            self.held.remove(pod, pod.holds)
            self.allocated.forget_unheld(pod.priority)
            self._askers.add(pod, -1)

    def _charge(self, pod: Pod, sign: float) -> None:
        self.allocated.charge(pod, sign)
        self._change("allocated")
        if pod.is_of_node:
            self._change("empty")
        if pod.opportunistic:
            self._change("given")
            self._opportunistic_changed.add(pod.uid)

    def _nominate(self, pod: Pod) -> None:
        waits = pod.awaited is not None and pod.node is None and not pod.finished
        known = self.nominated.pop(pod.uid, None)
        if waits:
            self.nominated[pod.uid] = pod
        if waits or known is not None:
            self._nominations = None
            self._change()

    # -- flights

    def take_off(self, flight: Flight) -> None:
        """Put a pod in flight that is not."""
        self.flights.take_off(flight)
        self._change_flights(flight.pod)

    def land(self, uid: str) -> None:
        """Take a pod out of flight, if it is."""
        flight = self.flights.land(uid)
        if flight is not None:
            self._change_flights(flight.pod)

    def _change_flights(self, pod: Pod) -> None:
        self._change("in_flight")
        self._copies.pop("placed", None)
        if pod.opportunistic:
            self._change("given")
        if pod.uid in self.nominated:
            self._nominations = None

    # -- what snapshots were given

    def _kept(self, name: str, make: Callable[[], Floats]) -> Floats:
        """Return a read-only array, the same one until `_change` drops it."""
        if name not in self._copies:
            self._copies[name] = read_only(make())
        return self._copies[name]

    def _change(self, name: str | None = None) -> None:
        self.version += 1
        if name is not None:
            self._copies.pop(name, None)


def _holding(pod: Pod) -> tuple[object, ...]:
    """Return what the books have of a pod."""
    return (pod.holds, pod.demand, pod.inputs, pod.opportunistic, pod.priority, pod.constraints, pod.near)

"""The three verbs of one extender, over one ledger. Each has a file of its own: decode, ask `verdict`, encode.

`filter` and `preempt` put the pod in flight to the nodes that passed (`cluster.ledger`); `prioritize` changes nothing.
"""

from dataclasses import dataclass, field

from extender.adapters.http.choosing import Chooser
from extender.adapters.http.event_wait import LAG_SECONDS, EventWait
from extender.adapters.http.filter import Filter, Order
from extender.adapters.http.preempt import Preempt
from extender.adapters.http.prioritize import Prioritize
from extender.adapters.http.request_context import Readiness, RequestContext, Warner
from extender.adapters.metrics.serve import ServeMetrics
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import CapacityRule
from extender.verdict import Ranker


@dataclass(slots=True, kw_only=True)
class Verbs:
    """The verbs; `wait_seconds` bounds filter's wait for pods in flight, `lag_seconds` that for late news.

    Without an `order`, every turn has come; without a `chooser`, kube-scheduler chooses among the nodes that pass.
    """

    ledger: Ledger
    ranker: Ranker
    rules: tuple[CapacityRule, ...]
    readiness: Readiness
    warner: Warner
    metrics: ServeMetrics
    wait_seconds: float
    order: Order | None = None
    chooser: Chooser | None = None
    lag_seconds: float = LAG_SECONDS
    _filter: Filter = field(init=False)
    _prioritize: Prioritize = field(init=False)
    _preempt: Preempt = field(init=False)

    def __post_init__(self) -> None:
        context = RequestContext(self.ledger, self.readiness, self.warner, self.metrics, self.rules)
        event_wait = EventWait(self.ledger, self.readiness, self.wait_seconds, lag_seconds=self.lag_seconds)
        self._filter = Filter(context, event_wait, self.order, self.chooser)
        self._prioritize = Prioritize(context, self.ranker)
        self._preempt = Preempt(context, event_wait)

    def filter(self, body: bytes) -> bytes:
        """Return ExtenderFilterResult for ExtenderArgs. Raises BadRequest, NotReady."""
        return self._filter.answer(body)

    def prioritize(self, body: bytes) -> bytes:
        """Return a HostPriorityList for ExtenderArgs; an unknown node gets 0. Raises BadRequest, NotReady."""
        return self._prioritize.answer(body)

    def preempt(self, body: bytes) -> bytes:
        """Return ExtenderPreemptionResult for ExtenderPreemptionArgs. Raises BadRequest, NotReady."""
        return self._preempt.answer(body)

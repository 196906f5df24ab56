"""Who is compared in the cluster benchmark: the stock scheduler, and Dovetail in each of its orders."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class BenchContender:
    """A way to schedule; `settings` are Dovetail's, None where it is not asked.

    kube-scheduler asks about a `percentage` of the nodes, at least 100; None: what is shipped. `gated` pods are created
    with our gate; `policies`: with `control` and the chart's admission policies, which decide. `timed`: how long each
    pod takes is measured too.
    """

    name: str
    about: str
    settings: Mapping[str, Any] | None = None
    percentage: int | None = None
    gated: bool = False
    policies: bool = False
    timed: bool = False

    @property
    def with_control(self) -> bool:
        """Whether `dovetail control` runs."""
        return self.gated or self.policies

    def row_id(self, figure: str, nodes: int) -> str:
        """Return the id of one of its figures; `gates` goes without a name."""
        return f"{figure}.{nodes}" if self.gated else f"{figure}.{self.name}.{nodes}"


STOCK = BenchContender("stock", "kube-scheduler, asked about a sample of the nodes", timed=True)
STOCK_ALL = BenchContender("stock_all", "kube-scheduler, asked about all nodes", percentage=100)
_NO_ORDER: Mapping[str, Any] = {"order": "gates"}
"""For pods without our gate."""
_CHOOSES: Mapping[str, Any] = {"placement": {"chosenBy": "filter"}}
GATES = BenchContender(
    "gates",
    "Dovetail: gates",
    {"order": "gates", **_CHOOSES},
    gated=True,
    timed=True,
)
AUTO = BenchContender(
    "auto",
    "Dovetail: `order: auto`, pods are held only while somebody waits",
    {"order": "auto", **_CHOOSES},
    policies=True,
    timed=True,
)
FILTER = BenchContender("filter", "Dovetail: `order: filter`, no control", {"order": "filter", **_CHOOSES})
RANKED = BenchContender("ranked", "Dovetail: no order, kube-scheduler chooses by our ranking", _NO_ORDER)
CHOSEN = BenchContender("chosen", "Dovetail: no order, `filter` chooses", {**_NO_ORDER, **_CHOOSES})
CONTENDERS = (STOCK, STOCK_ALL, AUTO, GATES, FILTER, RANKED, CHOSEN)
USUAL = (STOCK, AUTO, GATES, FILTER)
"""Those that run where none is named: stock, and each order."""

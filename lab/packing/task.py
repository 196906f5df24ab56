"""A task of the workload that is packed."""

from dataclasses import dataclass

from extender.cluster.eligibility import ANYWHERE, Constraints
from extender.cluster.peers import ALONE, Peers
from extender.cluster.resources import Amounts


@dataclass(frozen=True, slots=True)
class PackingTask:
    """One task of the workload. `node` is where it runs, if anywhere.

    Of the tasks of one `group` at most `at_most` may be on one machine; "": any number. `peers` is what it asks of
    other tasks, which know it by its `namespace` and `labels`.
    """

    demand: Amounts
    arrived: float = 0.0
    job: str = ""
    constraints: Constraints = ANYWHERE
    node: str | None = None
    group: str = ""
    at_most: int = 1
    namespace: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    peers: Peers = ALONE

"""One plan from beginning to end, and a planner that carries what one plan hands to the next."""

from extender.cluster.snapshot import Snapshot
from extender.cluster.waiting import Waiting
from extender.planner.board import Board
from extender.planner.plan import Carried, Plan
from extender.planner.reasons import held
from extender.planner.starvation import serve_starved
from extender.planner.tuning import DEFICIT, MATCHINGS, Policy


class Planner:
    """Plans by one policy and keeps what one plan hands to the next; `plan` is `plan_once` with that."""

    def __init__(self, policy: Policy | None = None, *, explain: bool = False) -> None:
        self.policy = policy or Policy()
        self.carried = Carried()
        self._explain = explain

    def plan(self, snapshot: Snapshot, waiting: Waiting, now: float) -> Plan:
        """Return what to start now."""
        plan = plan_once(self.policy, snapshot, waiting, now, self.carried, explain=self._explain)
        self.carried = plan.carried
        return plan


def plan_once(
    policy: Policy, snapshot: Snapshot, waiting: Waiting, now: float, carried: Carried, *, explain: bool = False
) -> Plan:
    """Return what to start at `now` seconds; `carried` is what the last plan returned as such."""
    board = Board(policy, snapshot, waiting, carried)
    reserved = serve_starved(board, now, carried)
    match = MATCHINGS[policy.matching]
    match(board)
    if (board.spared & board.alive).any():
        board.patient = False
        match(board)
    deficits = dict(zip(waiting.jobs.names, board.turns.deficit.tolist(), strict=True))
    return Plan(
        assignments=board.assignments(),
        terms=board.terms(),
        held=held(board) if explain else {},
        carried=Carried(reserved, deficits if policy.sharing == DEFICIT else {}),
    )

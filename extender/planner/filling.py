"""Who is admitted gets what there is, until nothing fits."""

from extender.planner.board import Board
from extender.planner.fifo import at_the_head
from extender.planner.plan import Floats, Mask
from extender.planner.starvation import serve_starved
from extender.planner.tuning import MATCHINGS
from extender.policy.matching import Table


def fill(board: Board, waited: Floats, may_starve: Mask) -> None:
    """Serve who has waited too long, `waited` [C] seconds and of `may_starve` [C], then match until nothing fits.

    In a FIFO queue only who is first in line can starve: the others wait because they are not.
    """
    if board.waiting.behind is not None:
        may_starve = may_starve & at_the_head(board.waiting.job, board.waiting.behind, board.alive)
    serve_starved(board, waited, may_starve)
    match(board, board)


def match(board: Board, table: Table) -> None:
    """Match until nothing fits on the `table`, the board or what stands before it."""
    matching = MATCHINGS[board.policy.matching]
    matching(table)
    if (board.spared & board.alive).any():
        board.patient = False
        matching(table)

"""Trying something out while a plan is made, and going back."""

from collections.abc import Callable

from extender.planner.board import Board


def checkpoint(board: Board) -> Callable[[], None]:
    """Return what takes back all that is taken and reserved from now on; whom to admit then is to be said anew.

    It may be called again and again.
    """
    free, left, reserved = board.free.copy(), board.left.copy(), board.reserved.copy()
    kept = (board.sources, board.fairness, board.taken, board.locality)
    parts = [part.checkpoint() for part in kept if part is not None]

    def undo() -> None:
        board.free[:], board.left[:], board.reserved[:] = free, left, reserved
        for part in parts:
            part()

    return undo

"""How room is kept: what is reserved is taken from what others see as free, and given back."""

from collections.abc import Mapping

import numpy as np

from extender.arrays import Floats, Rows
from extender.planner.board import Board
from extender.planner.fairness.soonest_room import on_empty_nodes
from extender.planner.plan import Reservation
from extender.policy.shares import dominant_shares, parts


class ReservedRoom:
    """What the board has reserved; `row` is the place of each class by its name."""

    def __init__(self, board: Board, row: Mapping[str, int]) -> None:
        self._board, self._row = board, row

    def keep(self, reservation: Reservation) -> None:
        """Take the room that is reserved from what others see as free."""
        self._move(reservation, 1.0)

    def give_back(self, reservation: Reservation) -> None:
        """Let others see it as free again."""
        self._move(reservation, -1.0)

    def still_fits(self, reservation: Reservation) -> bool:
        """Whether all its classes and nodes are there, each node large enough if it were empty."""
        rows = self._board.snapshot.layout.rows
        known = all(name in self._row and node in rows for name, node, _ in reservation.room)
        return known and all(
            bool(on_empty_nodes(self._board, self._row[name])[1][rows[node]]) for name, node, _ in reservation.room
        )

    def nodes_of(self, reservation: Reservation) -> Rows:
        """Return its nodes, as rows."""
        rows = self._board.snapshot.layout.rows
        return np.array([rows[node] for node in reservation.nodes], dtype=np.intp)

    def parts(self) -> Floats:
        """Return what is reserved by now, as parts of the cluster [R]."""
        return parts(self._board.reserved.sum(axis=1), self._board.classes.total)

    def idle(self) -> float:
        """Return the part of the cluster that has room, and is reserved, by the resource of which it is most."""
        board = self._board
        if not np.count_nonzero(board.reserved):
            return 0.0
        idle = np.clip(np.minimum(board.reserved, board.free + board.reserved), 0.0, None).sum(axis=1)
        return float(dominant_shares(idle, board.classes.total))

    def _move(self, reservation: Reservation, sign: float) -> None:
        board = self._board
        for name, node_name, tasks in reservation.room:
            node, row = board.snapshot.layout.rows[node_name], self._row[name]
            amounts = sign * tasks * _demand_on(board, row, node)
            board.free[:, node] -= amounts
            board.reserved[:, node] += amounts


def _demand_on(board: Board, row: int, node: int) -> Floats:
    """Return what a task takes of the node [R], reading there if it can."""
    near = board.classes.own[row] or board.sources.has_local(row, node)
    amounts = board.classes.here[row] if near else board.classes.away[row]
    return np.asarray(amounts)

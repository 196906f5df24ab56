"""Why tasks still wait, in words that a user understands."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from extender.arrays import Floats, Mask, short_of
from extender.planner.board import Board
from extender.planner.gangs import Gangs
from extender.planner.locality.delay import Locality
from extender.planner.locality.preferred import CROWDED, RESERVED, described, states
from extender.planner.plan import Near, Reservation, WaitLeft, WaitReason

SOURCES_ARE_BUSY = WaitReason("input", "the nodes that hold its input have no disk read or network out to spare")

CANNOT_READ = WaitReason("too-large", "no node could read its input as fast as it declares, even if all were empty")

_BARRED = "node selector, affinity, taints, cordons or volumes"

NONE_ALLOWS = WaitReason("barred", f"no node allows it: {_BARRED}")


def held(board: Board, gangs: Gangs, reserved: Mapping[str, Reservation]) -> dict[int, WaitReason]:
    """Return why tasks of a class still wait, by its row in `waiting`; `reserved` is the room that is kept."""
    nodes = {name: reservation.nodes for reservation in reserved.values() for name, _, _ in reservation.room}
    known: dict[tuple[bytes, bytes], WaitReason] = {}
    return {
        row: _with_reserved(_reason_once(board, gangs, row, known), nodes.get(board.waiting.names[row], ()))
        for row in board.left.nonzero()[0].tolist()
    }


def _reason_once(board: Board, gangs: Gangs, index: int, known: dict[tuple[bytes, bytes], WaitReason]) -> WaitReason:
    """Return the reason of a class, from what is `known` where it hangs on what it needs and may use alone.

    Of thousands of classes most need the same, and each reason takes a look at all nodes.
    """
    locality = board.locality
    chooses = locality is not None and bool(locality.nearness.chooses[index])
    if chooses or gangs.of[index] >= 0 or not board.classes.own[index]:
        return _reason(board, gangs, index)
    barred = b"" if board.waiting.barred is None else board.waiting.barred[index].tobytes()
    shape = barred, board.classes.here[index].tobytes()
    if shape not in known:
        known[shape] = _reason(board, gangs, index)
    return known[shape]


def _with_reserved(why: WaitReason, nodes: Sequence[str]) -> WaitReason:
    """Say where room is reserved for it, too."""
    if not nodes:
        return why
    named = ", ".join(nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")
    return replace(why, text=f"{why.text}; room is reserved for it on {named}")


def _reason(board: Board, gangs: Gangs, index: int) -> WaitReason:
    """Return the reason that would last longest: what can never be first, what another plan may change last."""
    nodes = np.arange(board.free.shape[1])
    allowed = board.room.allowed(np.array([index]), nodes)[0]
    if not len(nodes):
        return WaitReason("no-nodes", "there are no nodes")
    if not allowed.any():
        return NONE_ALLOWS
    own = bool(board.classes.own[index])
    demand = board.classes.here[index] if own else board.waiting.demand[index]
    short = short_of(board.snapshot.empty, demand)
    if short[allowed].any(axis=1).all():
        return WaitReason("too-large", _too_large(board, short[allowed], everywhere=bool(allowed.all())))
    if board.classes.unreadable[index]:
        return CANNOT_READ
    gang = int(gangs.of[index])
    if gang >= 0 and gangs.lacks(board, gang) > 0:
        return _gang(board, gangs, gang)
    if board.locality is not None and board.locality.waits.passed_over(index):
        return _locality(board, board.locality, index, demand)
    free = board.free.T
    short = short_of(free + board.reserved.T, demand)
    if short[allowed].any(axis=1).all():
        return WaitReason("no-room", _no_room(board, short, allowed))
    if not (own or board.sources.able(np.array([index]), nodes).any()):
        return SOURCES_ARE_BUSY
    if short_of(free, demand)[allowed].any(axis=1).all():
        return WaitReason("reserved", "the room that it would fit into is reserved for others")
    return WaitReason("input", "reading its input needs more disk read or network in than nodes with room have free")


def _most(board: Board, short: Mask) -> str:
    return board.snapshot.layout.axis[int(short.sum(axis=0).argmax())]


def _too_large(board: Board, short: Mask, *, everywhere: bool) -> str:
    if everywhere:
        return f"no node is large enough: too little {_most(board, short)} on every node"
    return f"no node that allows it is large enough: too little {_most(board, short)} on each"


def _gang(board: Board, gangs: Gangs, gang: int) -> WaitReason:
    least, waits = int(gangs.least[gang]), gangs.waits(gang)
    if waits < least:
        return WaitReason("gang", f"its gang of {least} is not complete: only {waits} wait")
    if (most := gangs.most_if_empty(board.snapshot.empty, gang)) < least:
        return WaitReason("too-large", f"its gang of {least} is too large: empty, the nodes that allow it hold {most}")
    return WaitReason("gang", f"its gang of {least} does not fit in one plan")


def _locality(board: Board, locality: Locality, index: int, demand: Floats) -> WaitReason:
    """Return what it waits for, and how far that has got; nothing in the words changes while it waits at one level."""
    waits, names = locality.waits, board.waiting.level_names
    level = int(waits.may[index])
    after, farther = waits.until_beyond(index)
    beyond = "anywhere" if farther >= locality.nearness.anywhere else f"{_level_name(names, farther)} level"
    of_nodes = states(board, locality, index, demand)
    texts = {
        task: f"waits for {_level_name(names, level)}-local room{nodes and ': '}{nodes}; {beyond} from {after:g} s on"
        for task, nodes in described(board, locality, index, level, of_nodes).items()
    }
    first = next(iter(texts.values()))
    reserved, crowded = ((of_nodes == state).nonzero()[0].tolist() for state in (RESERVED, CROWDED))
    wait = WaitLeft(beyond, after, locality.passed_over(index), stays=waits.stays(index))
    return WaitReason("locality", first, wait, Near(level, reserved, crowded, {} if -1 in texts else texts))


def _level_name(names: Sequence[str], level: int) -> str:
    return names[level] if level < len(names) else f"level-{level}"


def _no_room(board: Board, short: Mask, allowed: Mask) -> str:
    most = _most(board, short[allowed])
    if short.any(axis=1).all():
        return f"no node has enough free: mostly {most} is short"
    return f"the nodes with room do not allow it: {_BARRED}; on those that do, mostly {most} is short"

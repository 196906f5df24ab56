"""The arrays that decisions are made of: their types, and whether a demand fits. Nothing here knows what they mean.

Shapes are said where an array is: [N] nodes, [C] task classes, [J] jobs, [Q] queues, [T] tasks, [R] resources.
"""

from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
"""Places in other arrays; -1 for none."""
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]

Number = TypeVar("Number", np.float64, np.int64, np.intp)


def fits(room: Floats, demand: Floats) -> Mask:
    """Return where there is room for a demand [...]; both arrays are [..., R].

    The comparison is exact. A resource that is not demanded never refuses, even where it is over-allocated.
    """
    return needs_fit(room, needs(demand))


def short_of(room: Floats, demand: Floats) -> Mask:
    """Return of which resources there is too little for a demand [..., R]: where none is short, the demand `fits`."""
    return np.asarray(room < needs(demand))


def needs(demand: Floats) -> Floats:
    """Return a demand prepared for many comparisons: minus infinity where nothing is demanded, so that this fits."""
    return np.where(demand > 0, demand, -np.inf)


def needs_fit(room: Floats, needs: Floats) -> Mask:
    """Return where a demand that `needs` has prepared fits [...]; both arrays are [..., R]."""
    fit: Mask = np.logical_and.reduce(needs <= room, axis=-1)  # `all` does the same by way of Python
    return fit


def some(mask: Mask) -> Mask:
    """Return where anything along the last axis holds [...]: over few columns a product takes a third of the time."""
    return np.asarray(mask @ np.ones(mask.shape[-1]) > 0)


def times_fits(room: Floats, demand: Floats) -> Floats:
    """Return how many times a demand [R] fits into the room [..., R], as whole numbers; infinite if it is nothing.

    It is 0, and not less, where a resource that is demanded is over-allocated.
    """
    demanded = demand > 0
    times = np.floor(room[..., demanded] / demand[demanded])
    return np.asarray(np.maximum(times.min(axis=-1, initial=np.inf), 0.0))


def sum_by(rows: Rows, amounts: Floats, count: int) -> Floats:
    """Return the sums of amounts [P, R] by the row that each is for [P], of so many rows [count, R]."""
    sums = np.empty((count, amounts.shape[1]))
    for column in range(amounts.shape[1]):
        sums[:, column] = np.bincount(rows, weights=amounts[:, column], minlength=count)
    return sums


def rows_by(group: Rows, count: int) -> list[Rows]:
    """Return the rows of each of so many groups, ascending; `group` [P] is that of each row, -1 for none.

    All are sorted once: to look for one group after the other takes the time of all rows for each.
    """
    order = np.argsort(group, kind="stable")
    begins = np.searchsorted(group[order], np.arange(count + 1)).tolist()
    return [order[begin:end] for begin, end in pairwise(begins)]


def read_only(array: NDArray[Number]) -> NDArray[Number]:
    """Return the array itself, no longer to be written to."""
    array.setflags(write=False)
    return array

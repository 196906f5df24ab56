"""Prometheus' answer to a query over a range of time, as series. An answer with a reservation is no answer."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from extender.adapters.usage.decoding import Reply
from extender.arrays import Floats
from extender.errors import UsageError

MOST_SERIES = 400_000
"""No answer has more: 5,000 nodes with 70 pods each, those that have ended among them."""


@dataclass(frozen=True, slots=True)
class Series:
    """The labels of one series, the times of its samples [K], seconds since the epoch, and their values [K]."""

    labels: Mapping[str, str]
    times: Floats
    values: Floats


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Matrix(msgspec.Struct, rename="camel"):
    result_type: str
    result: list[_Series]


class _Reply(Reply):
    data: _Matrix | None = None


_decode = msgspec.json.Decoder(_Reply).decode


def series(body: bytes) -> list[Series]:
    """Return what an answer says. Raises UsageError: malformed, refused, partial, or given with warnings."""
    try:
        reply = _decode(body)
        matrix = reply.data
        if matrix is not None and len(matrix.result) > MOST_SERIES:
            raise UsageError(
                "malformed", f"the answer has {len(matrix.result):,} series; at most {MOST_SERIES:,} are read"
            )
        result = [] if matrix is None else [_series(one) for one in matrix.result]
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise UsageError("malformed", f"the answer is not one of Prometheus to a range query: {error}") from None
    reply.require(matrix.result_type if matrix else None, "matrix")
    return result


def _series(one: _Series) -> Series:
    times = np.array([time for time, _ in one.values], dtype=np.float64)
    return Series(one.metric, times, np.array([float(text) for _, text in one.values], dtype=np.float64))

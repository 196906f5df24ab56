"""Prometheus' answer to an instant query, as rows. An answer with a reservation is no answer."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from extender.errors import UsageError


@dataclass(frozen=True, slots=True)
class Row:
    """One series of an answer: its labels and its value, which may be anything that a float can be."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows, and the time for which they were computed by Prometheus' clock; None where there are no rows."""

    rows: tuple[Row, ...]
    evaluated: float | None


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct, rename="camel"):
    result_type: str
    result: list[_Series]


class _Reply(msgspec.Struct, rename="camel"):
    """`infos` are left out: they are about how a query is written, and say nothing about its values."""

    status: str
    data: _Vector | None = None
    error: str = ""
    error_type: str = ""
    warnings: list[str] | None = None
    is_partial: bool = False


def answer(body: bytes) -> Answer:
    """Return what an answer says. Raises UsageError: malformed, refused, partial, or given with warnings."""
    try:
        reply = msgspec.json.decode(body, type=_Reply)
        if reply.status == "success" and reply.data is not None:
            rows = tuple(Row(series.metric, float(series.value[1])) for series in reply.data.result)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise UsageError("malformed", f"the answer is not one of Prometheus to an instant query: {error}") from None
    if reply.status != "success" or reply.data is None:
        raise UsageError("refused", f"{reply.error_type or reply.status}: {reply.error[:200]}")
    if reply.warnings:
        raise UsageError("warnings", f"the answer came with a warning: {reply.warnings[0][:200]}")
    if reply.is_partial:
        raise UsageError("partial", "the answer is partial (isPartial): some of the storage did not answer")
    if reply.data.result_type != "vector":
        raise UsageError("malformed", f"the answer is a {reply.data.result_type}; accepted: a vector")
    times = {series.value[0] for series in reply.data.result}
    if len(times) > 1:
        raise UsageError("malformed", "the answer is for several times; accepted: one")
    return Answer(rows, next(iter(times), None))

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
class PrometheusAnswer:
    """The rows, and the time for which they were computed by Prometheus' clock; None where there are no rows."""

    rows: tuple[Row, ...]
    evaluated: float | None


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct, rename="camel"):
    result_type: str
    result: list[_Series]


class Reply(msgspec.Struct, rename="camel"):
    """What every answer has. `infos` are left out: they are about how a query is written, not about its values."""

    status: str
    error: str = ""
    error_type: str = ""
    warnings: list[str] | None = None
    is_partial: bool = False

    def require(self, result_type: str | None, accepted: str) -> None:
        """Raise UsageError where it is refused, partial, given with warnings, or of another type; None: has no data."""
        if self.status != "success" or result_type is None:
            raise UsageError("refused", f"{self.error_type or self.status}: {self.error[:200]}")
        if self.warnings:
            raise UsageError("warnings", f"the answer came with a warning: {self.warnings[0][:200]}")
        if self.is_partial:
            raise UsageError("partial", "the answer is partial (isPartial): some of the storage did not answer")
        if result_type != accepted:
            raise UsageError("malformed", f"the answer is a {result_type}; accepted: a {accepted}")


class _Reply(Reply):
    data: _Vector | None = None


_decode = msgspec.json.Decoder(_Reply).decode


def answer(body: bytes) -> PrometheusAnswer:
    """Return what an answer says. Raises UsageError: malformed, refused, partial, or given with warnings."""
    try:
        reply = _decode(body)
        result = [] if reply.data is None else reply.data.result
        rows = tuple(Row(series.metric, float(series.value[1])) for series in result)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise UsageError("malformed", f"the answer is not one of Prometheus to an instant query: {error}") from None
    reply.require(reply.data.result_type if reply.data else None, "vector")
    times = {series.value[0] for series in result}
    if len(times) > 1:
        raise UsageError("malformed", "the answer is for several times; accepted: one")
    return PrometheusAnswer(rows, next(iter(times), None))

"""How a process logs."""

import logging
import sys

import msgspec
import structlog

from extender.settings import LogSettings


def configure_logs(settings: LogSettings) -> None:
    """Write structured lines to standard error, also what libraries warn of."""
    logging.basicConfig(level=logging.WARNING, handlers=[_OfLibraries()])
    shared: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    minimum = structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[settings.level.upper()])
    if settings.format == "json":
        structlog.configure(
            processors=[*shared, structlog.processors.JSONRenderer(serializer=_json)],
            wrapper_class=minimum,
            logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
            cache_logger_on_first_use=True,
        )
    else:
        structlog.configure(
            processors=[*shared, structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"])],
            wrapper_class=minimum,
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
            cache_logger_on_first_use=True,
        )


class _OfLibraries(logging.Handler):
    """Writes what libraries log by Python's own logging as lines like all others."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        structlog.get_logger().log(record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info)


def _json(event: object, **_: object) -> bytes:
    return msgspec.json.encode(event)

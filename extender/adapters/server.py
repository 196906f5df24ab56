"""The HTTP server: waitress, with each reply in one write, and a stop that drains.

Two writes a reply, with Nagle's algorithm at the other end, cost kube-scheduler 40 ms a call.
"""

import socket
import threading
import time
from typing import Any

import structlog
from flask import Flask
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import create_server
from waitress.task import WSGITask

from extender.errors import DovetailError
from extender.settings import Server as ServerSettings

_CONNECTIONS = 1_000
"""waitress' default of 100 idle connections would keep the probes out."""

_IN_MEMORY_BYTES = 2**24
"""A larger body waits in a temporary file: whole nodes of some 8,000 machines fit."""

log = structlog.get_logger()


class _OneWriteTask(WSGITask):  # type: ignore[misc] # waitress has no types
    """Sends head and body together where the reply has a length, as all of ours do."""

    wrote_header: bool

    def write(self, data: bytes) -> None:
        if self.wrote_header or not self.complete or self.content_length != len(data):
            super().write(data)
            return
        self.wrote_header = True
        self.content_bytes_written = len(data)
        self.channel.write_soon(self.build_response_header() + data)


class _Channel(HTTPChannel):  # type: ignore[misc] # waitress has no types
    task_class = _OneWriteTask


class Server:
    """Serves an app on one address until told to stop."""

    def __init__(self, app: Flask, settings: ServerSettings) -> None:
        self._stopping = threading.Event()
        self._drain_seconds = settings.drain_seconds
        self._sockets: dict[int, Any] = {}
        self._server = create_server(
            app.wsgi_app,
            map=self._sockets,
            sockets=[_listen(settings.address, settings.port)],
            threads=settings.threads,
            channel_timeout=settings.keep_alive_seconds,
            max_request_body_size=settings.max_body_bytes + 1,  # waitress refuses what reaches it
            inbuf_overflow=_IN_MEMORY_BYTES,
            connection_limit=_CONNECTIONS,
            outbuf_overflow=2**30,
            recv_bytes=2**18,
            asyncore_use_poll=True,
            ident=None,
            clear_untrusted_proxy_headers=True,
        )
        self._server.channel_class = _Channel

    @property
    def port(self) -> int:
        """The port that it listens on (the system's choice where settings say 0)."""
        return int(self._server.effective_port)

    def run(self) -> None:
        """Serve until `stop`; then take no new connection, answer what has been asked, and return."""
        while not self._stopping.is_set():
            self._turn(1.0)
        self._server.accepting = False
        wasyncore.dispatcher.close(self._server)
        deadline = time.monotonic() + self._drain_seconds
        while self._busy() and time.monotonic() < deadline:
            self._turn(0.05)
        if self._busy():
            log.warning("requests dropped at the end of the drain", drain_seconds=self._drain_seconds)
        self._server.task_dispatcher.shutdown(timeout=1)
        for channel in list(self._server.active_channels.values()):
            channel.close()
        self._server.trigger.close()

    def stop(self) -> None:
        """Ask `run` to drain and return; may be called from a signal handler, and more than once."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._server.pull_trigger()

    def _turn(self, seconds: float) -> None:
        wasyncore.loop(timeout=seconds, map=self._sockets, use_poll=True, count=1)

    def _busy(self) -> bool:
        """Say whether a request is being read, answered or sent."""
        channels = list(self._server.active_channels.values())
        return any(c.request is not None or c.requests or c.total_outbufs_len for c in channels)


def _listen(address: str, port: int) -> socket.socket:
    """Return a listening socket. Raises DovetailError, which says what to set."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, backlog=1024)
    except OSError as error:
        raise DovetailError(
            f"cannot listen on {address}:{port}: {error.strerror}; set server.address and server.port to what is free"
        ) from None

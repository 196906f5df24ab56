"""The HTTP server: waitress, with each reply in one write, bounds on what callers may leave unfinished, and a drain.

Two writes a reply, with Nagle's algorithm at the other end, cost kube-scheduler 40 ms a call.

No caller can shut others out. A request that does not arrive whole within seconds ends its connection, and so does a
reply that is not taken. Where there are too many connections, one that has never asked anything is closed first. Where
all unfinished requests together are too large, the oldest is dropped.
"""

import socket
import threading
import time
from typing import Any

import structlog
from flask import Flask
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher, WSGITask

from extender.errors import DovetailError
from extender.settings import Server as ServerSettings

_CONNECTIONS = 256
"""kube-scheduler keeps one for each verb."""

_REQUEST_SECONDS = 10.0
"""kube-scheduler itself gives up after five."""

_UNFINISHED = 8
"""So many bodies of the largest size may be under way at a time, all together."""

_HEADER_BYTES = 2**14

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
    """A connection. `begun_at`: since when the request that is being received, or the first one, is awaited."""

    task_class = _OneWriteTask
    has_asked = False
    receiving: object = None
    begun_at = 0.0

    def received(self, data: bytes) -> bool:
        taken = bool(super().received(data))
        if self.request is not self.receiving:
            self.receiving, self.begun_at = self.request, time.time()
        self.has_asked = self.has_asked or bool(self.requests)
        if self.request is not None:
            self.server.bound_unfinished()
        return taken

    @property
    def busy(self) -> bool:
        """Whether a request is being received, answered or sent."""
        return self.request is not None or bool(self.requests) or bool(self.total_outbufs_len)

    def is_overdue(self, before: float) -> bool:
        """Say whether what is under way began before then, or has not begun since the connection was made."""
        if self.requests:
            return False
        if self.total_outbufs_len:
            return bool(self.last_activity < before)
        if self.request is None and self.has_asked:
            return False
        return bool((self.begun_at if self.request is not None else self.creation_time) < before)

    def end(self) -> None:
        """Have the connection closed."""
        self.will_close = True


def _worth(channel: _Channel) -> tuple[bool, bool, float]:
    """Return how much a connection is worth: most if it has asked before, then if no half of a request is under way."""
    return channel.has_asked, channel.request is None, channel.last_activity


class _Listener(TcpWSGIServer):  # type: ignore[misc] # waitress has no types
    """Takes every connection; where there are too many, the least wanted one is closed."""

    connections, request_seconds, unfinished_bytes = _CONNECTIONS, _REQUEST_SECONDS, 2**26
    channel_class = _Channel

    def channels(self) -> list[_Channel]:
        """Return the connections that are not about to be closed."""
        return [channel for channel in self.active_channels.values() if not channel.will_close]

    def maintenance(self, now: float) -> None:
        """Close what is idle for too long, and what is not finished in time."""
        super().maintenance(now)
        for channel in self.channels():
            if channel.is_overdue(now - self.request_seconds):
                channel.end()

    def handle_accept(self) -> None:
        """Take a connection; where there are too many, close another: one that never asked, then one at rest."""
        super().handle_accept()
        channels = self.channels()
        if len(channels) > self.connections:
            free = [channel for channel in channels[:-1] if not channel.requests and not channel.total_outbufs_len]
            min(free or channels[-1:], key=_worth).end()

    def bound_unfinished(self) -> None:
        """Close the oldest unfinished request where all of them are too large together."""
        under_way = [channel for channel in self.channels() if channel.request is not None]
        if sum(channel.request.body_bytes_received for channel in under_way) > self.unfinished_bytes:
            min(under_way, key=lambda channel: channel.begun_at).end()


class Server:
    """Serves an app on one address until told to stop."""

    def __init__(
        self,
        app: Flask,
        settings: ServerSettings,
        *,
        connections: int = _CONNECTIONS,
        request_seconds: float = _REQUEST_SECONDS,
    ) -> None:
        self._stopping, self._stop_lock = threading.Event(), threading.RLock()
        self._drain_seconds = settings.drain_seconds
        self._sockets: dict[int, Any] = {}
        listening = _listen(settings.address, settings.port)
        bounds = Adjustments(
            sockets=[listening],
            threads=settings.threads,
            channel_timeout=settings.keep_alive_seconds,
            cleanup_interval=1,
            max_request_header_size=_HEADER_BYTES,
            max_request_body_size=settings.max_body_bytes + 1,  # waitress refuses what reaches it
            inbuf_overflow=_IN_MEMORY_BYTES,
            connection_limit=2**31 - 1,  # a listener that stops to listen would shut everybody out
            outbuf_overflow=2**30,
            recv_bytes=2**18,
            asyncore_use_poll=True,
            ident=None,
            clear_untrusted_proxy_headers=True,
        )
        threads = ThreadedTaskDispatcher()
        threads.set_thread_count(bounds.threads)
        about = (listening.family, listening.type, listening.proto, listening.getsockname())
        self._server = _Listener(
            app.wsgi_app,
            self._sockets,
            True,
            listening,
            dispatcher=threads,
            adj=bounds,
            bind_socket=False,
            sockinfo=about,
        )
        self._server.connections, self._server.request_seconds = connections, request_seconds
        self._server.unfinished_bytes = _UNFINISHED * settings.max_body_bytes

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
        with self._stop_lock:  # whoever stops us may still be about to pull it: it must not write to another file then
            self._server.trigger.close()

    def stop(self) -> None:
        """Ask `run` to drain and return; may be called from a signal handler, and more than once."""
        with self._stop_lock:
            if not self._stopping.is_set():
                self._stopping.set()
                self._server.pull_trigger()

    def _turn(self, seconds: float) -> None:
        wasyncore.loop(timeout=seconds, map=self._sockets, use_poll=True, count=1)

    def _busy(self) -> bool:
        """Say whether a request is being read, answered or sent."""
        return any(channel.busy for channel in self._server.active_channels.values())


def _listen(address: str, port: int) -> socket.socket:
    """Return a listening socket. Raises DovetailError, which says what to set."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, backlog=1024)
    except OSError as error:
        raise DovetailError(
            f"cannot listen on {address}:{port}: {error.strerror}; set server.address and server.port to what is free"
        ) from None

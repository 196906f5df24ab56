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
from waitress.task import ThreadedTaskDispatcher

from extender.adapters.http.listening import CONNECTIONS, REQUEST_SECONDS, ConnectionListener
from extender.errors import DovetailError
from extender.settings import ServerSettings

_UNFINISHED = 8
"""So many bodies of the largest size may be under way at a time, all together."""

_LULL_SECONDS = 1.0
"""At the end a connection that has been used within this time is kept open: the next request may be on its way."""

_HEADER_BYTES = 2**14

_IN_MEMORY_BYTES = 2**24
"""A larger body waits in a temporary file: whole nodes of some 8,000 machines fit."""

log = structlog.get_logger()


class Server:
    """Serves an app on one address until told to stop."""

    def __init__(
        self,
        app: Flask,
        settings: ServerSettings,
        *,
        connections: int = CONNECTIONS,
        request_seconds: float = REQUEST_SECONDS,
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
            clear_untrusted_proxy_headers=False,  # nobody reads them
        )
        threads = ThreadedTaskDispatcher()
        threads.set_thread_count(bounds.threads)
        about = (listening.family, listening.type, listening.proto, listening.getsockname())
        self._server = ConnectionListener(
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
        """Serve until `stop`; then take no new connection, answer what has been asked, and return.

        Each of the last answers closes its connection, and says so. Who asks one question after the other would else
        always have one on its way when the connections are closed, and see it fail.
        """
        while not self._stopping.is_set():
            self._turn(1.0)
        self._server.draining, self._server.accepting = True, False
        wasyncore.dispatcher.close(self._server)
        deadline = time.monotonic() + self._drain_seconds
        while (self._busy() or self._in_use()) and time.monotonic() < deadline:
            self._turn(0.05)
        if self._busy():
            log.warning("requests dropped at the end of the drain", drain_seconds=self._drain_seconds)
        for channel in list(self._server.active_channels.values()):  # at once: nobody reads them any more
            channel.close()
        self._server.task_dispatcher.shutdown(timeout=1)
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

    def _in_use(self) -> bool:
        """Say whether a connection may be asked the next question at any moment."""
        since = time.time() - _LULL_SECONDS
        return any(channel.has_asked and channel.last_activity > since for channel in self._server.channels())


def _listen(address: str, port: int) -> socket.socket:
    """Return a listening socket. Raises DovetailError, which says what to set."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, backlog=1024)
    except OSError as error:
        raise DovetailError(
            f"cannot listen on {address}:{port}: {error.strerror}; set server.address and server.port to what is free"
        ) from None

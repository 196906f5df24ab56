"""Connections of the HTTP server: who answers them, and which are closed where there are too many.

waitress has one thread that listens, and others that answer. A connection that has just been answered is kept by the
thread that did so, for a moment: kube-scheduler asks about the next pod within milliseconds, and to hand each request
from one thread to another and back costs as much as a verb.
"""

import select
import threading
import time
from typing import Any

from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer
from waitress.task import WSGITask

CONNECTIONS = 256
"""kube-scheduler keeps one for each verb."""

REQUEST_SECONDS = 10.0
"""kube-scheduler itself gives up after five."""

_KEPT_SECONDS = 0.05
"""For so long a thread waits for the next request of a connection, if others are idle."""


class _OneWriteTask(WSGITask):  # type: ignore[misc] # waitress has no types
    """Sends head and body together where the reply has a length, as all of ours do."""

    wrote_header: bool

    def write(self, data: bytes) -> None:
        if self.channel.server.draining:  # says `Connection: close`: the next request goes to another replica
            self.set_close_on_finish()
        if self.wrote_header or not self.complete or self.content_length != len(data):
            super().write(data)
            return
        self.wrote_header = True
        self.content_bytes_written = len(data)
        self.channel.write_soon(self.build_response_header() + data)


class Channel(HTTPChannel):  # type: ignore[misc] # waitress has no types
    """A connection. `begun_at`: since when the request that is being received, or the first one, is awaited."""

    task_class = _OneWriteTask
    has_asked = False
    receiving: object = None
    begun_at = 0.0
    is_kept = False

    def service(self) -> None:
        """Answer a request, and those that follow soon: nobody else reads the connection meanwhile.

        A thread that does not keep the connection lets go of it with its answer: `is_kept` may then be another's.
        """
        keeps = self.is_kept = self.server.has_idle_threads()
        if not keeps:
            super().service()
            return
        self.server.keeping.channel = self
        try:
            super().service()
            while self.requests or self._receive_next():
                super().service()
        finally:
            self.is_kept, self.server.keeping.channel = False, None
        self.server.pull_trigger()

    def readable(self) -> bool:
        """Say whether the thread that listens is to read it.

        `is_kept` is looked at last: a thread keeps a connection from before its request is answered and gone.
        """
        return bool(super().readable()) and not self.is_kept

    @property
    def is_at_rest(self) -> bool:
        """Whether it is open, and nothing is left to be sent, answered or closed."""
        busy = self.busy or self.will_close or self.close_when_flushed
        return bool(self.connected) and not busy

    def _receive_next(self) -> bool:
        """Wait a moment for a request, and receive it; False where none came as a whole.

        Whatever is not simply something to read is left to the thread that listens.
        """
        number = self._fileno
        if number is None or not self.is_at_rest:
            return False
        poll = select.poll()
        poll.register(number, select.POLLIN | select.POLLRDHUP)
        if [flags for _, flags in poll.poll(_KEPT_SECONDS * 1000)] != [select.POLLIN]:
            return False
        try:
            data = self.socket.recv(self.adj.recv_bytes)
        except OSError:
            return False
        self.last_activity = time.time()
        return self.received(data) and bool(self.requests)

    def received(self, data: bytes) -> bool:
        """Take in what has come, and say whether it was taken."""
        try:
            taken = bool(super().received(data))
        except ValueError:  # a Content-Length of more digits than Python reads as a number
            self.end()
            return False
        if self.request is not self.receiving:
            self.receiving, self.begun_at = self.request, time.time()
        self.has_asked = self.has_asked or bool(self.requests)
        if self.request is not None and not self.is_kept:
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


def _worth(channel: Channel) -> tuple[bool, bool, float]:
    """Return how much a connection is worth: most if it has asked before, then if no half of a request is under way."""
    return channel.has_asked, channel.request is None, channel.last_activity


class ConnectionListener(TcpWSGIServer):  # type: ignore[misc] # waitress has no types
    """Takes every connection; where there are too many, the least wanted one is closed."""

    connections, request_seconds, unfinished_bytes = CONNECTIONS, REQUEST_SECONDS, 2**26
    draining = False
    channel_class = Channel

    def __init__(self, *given: Any, **more: Any) -> None:  # noqa: ANN401 - waitress' own
        self.keeping = threading.local()
        super().__init__(*given, **more)

    def has_idle_threads(self) -> bool:
        """Say whether more than half of the threads that answer have nothing to do."""
        threads = self.task_dispatcher
        return bool(2 * threads.active_count < len(threads.threads)) and not threads.queue

    def add_task(self, channel: Channel) -> None:
        """Have a request answered; the thread that keeps its connection does that itself."""
        if not channel.is_kept:
            super().add_task(channel)

    def pull_trigger(self) -> None:
        """Wake the thread that listens, unless who asks keeps a connection with which nothing else is to be done."""
        kept = getattr(self.keeping, "channel", None)
        if kept is None or not kept.is_kept or not kept.is_at_rest:
            super().pull_trigger()

    def channels(self) -> list[Channel]:
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

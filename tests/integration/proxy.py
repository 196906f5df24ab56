"""A TCP proxy on loopback whose connections can be cut: a network between the extender and the API server."""

import contextlib
import queue
import socket
import threading
import time


class Proxy:
    """Forwards to a port until `cut`; `closed` refuses new connections, `lag_seconds` delays what the server says."""

    def __init__(self, port):
        self._to = ("127.0.0.1", port)
        self._pairs = []
        self.closed = False
        self.lag_seconds = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """End every connection, in the middle of whatever it says."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def close(self):
        """Stop listening and end every connection."""
        self.closed = True
        self._listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self.closed:
                near.close()
                continue
            try:
                far = socket.create_connection(self._to)
            except OSError:
                near.close()
                continue
            self._pairs.append((near, far))
            threading.Thread(target=_copy, args=(near, far, lambda: 0.0), daemon=True).start()
            threading.Thread(target=_copy, args=(far, near, lambda: self.lag_seconds), daemon=True).start()


def _copy(source, target, lag):
    """Copy until the end; what is read now is sent `lag` seconds later, in order."""
    late = queue.Queue()
    threading.Thread(target=_send, args=(late, target), daemon=True).start()
    with contextlib.suppress(OSError):
        while data := source.recv(2**16):
            late.put((time.monotonic() + lag(), data))
    late.put((0.0, b""))
    with contextlib.suppress(OSError):
        source.shutdown(socket.SHUT_RDWR)


def _send(late, target):
    with contextlib.suppress(OSError):
        while (item := late.get())[1]:
            time.sleep(max(0.0, item[0] - time.monotonic()))
            target.sendall(item[1])
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)

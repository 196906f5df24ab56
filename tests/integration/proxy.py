"""A TCP proxy on loopback whose connections can be cut: a network between the extender and the API server."""

import contextlib
import socket
import threading


class Proxy:
    """Forwards to a port until `cut`; with `closed` set, refuses new connections by closing them at once."""

    def __init__(self, port):
        self._to = ("127.0.0.1", port)
        self._pairs = []
        self.closed = False
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
            for ends in ((near, far), (far, near)):
                threading.Thread(target=_copy, args=ends, daemon=True).start()


def _copy(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(2**16):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)

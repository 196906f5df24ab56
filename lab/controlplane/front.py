"""What stands before a server on loopback, and answers 500 for it where it is told to."""

import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3

_SECONDS = 30.0


class Front(ThreadingHTTPServer):
    """Hands requests on to `target` (a URL) and answers as it does; while `failing`, it answers 500 by itself."""

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target, self.failing = target, False
        self.connections = urllib3.PoolManager(maxsize=8, retries=False, timeout=_SECONDS)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Return its own address."""
        return f"http://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        """Stop."""
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Front

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, kind, data = self._asked(body)
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Type", kind)
        self.end_headers()
        with suppress(ConnectionError):  # whoever asked does not wait any more
            self.wfile.write(data)

    def _asked(self, body: bytes) -> tuple[int, str, bytes]:
        if self.server.failing:
            return 500, "text/plain", b"told to fail"
        headers = {"Content-Type": self.headers.get("Content-Type", "text/plain")}
        try:
            answer = self.server.connections.request(
                self.command, self.server.target + self.path, body=body, headers=headers
            )
        except urllib3.exceptions.HTTPError as error:
            return 502, "text/plain", repr(error).encode()
        return answer.status, answer.headers.get("Content-Type", "text/plain"), answer.data

    def log_message(self, *args: object) -> None:
        pass

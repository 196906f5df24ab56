"""A Prometheus on loopback that says what a test wants, over real HTTP."""

import json
import re
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from extender.adapters.usage.access import Access
from extender.adapters.usage.prometheus import Prometheus
from extender.adapters.usage.queries import Queries
from extender.cluster.model import Node, Pod
from extender.settings.sections import UsageAccess

NAMES = ("cpu", "memory", "disk-read", "disk-write", "network-in", "network-out", "time")
PRESSURE = "cpu-pressure"
GIB = 2.0**30
OFFERS = {"cpu": 4000.0, "memory": 8 * GIB, "network-in": 1e8}
NODES = [Node("a", OFFERS, addresses=("10.0.0.1",)), Node("b", OFFERS, addresses=("10.0.0.2",))]
PODS = [
    Pod("uid-1", "lab", "one", {}, node="a", opportunistic=True),
    Pod("uid-2", "lab", "two", {}, node="b", opportunistic=True),
]
STALE = 90.0
_PART = re.compile(r'label_replace\((.+?), "dovetail", "([a-z-]+)", "", ""\)')


class FakePrometheus(ThreadingHTTPServer):
    """Answers the questions of one look. `values` are by (who measures, dimension): who -> value, or several values.

    Who measures is `node`, `pods-on` or `cpu-pressure` (by the node) or `pod` (by namespace, pod, node). The other
    attributes are what goes wrong.
    """

    daemon_threads = True

    def __init__(self, context=None):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.scheme = "http"
        if context is not None:
            self.socket, self.scheme = context.wrap_socket(self.socket, server_side=True), "https"
        now = time.time()
        self.values = {
            ("node", "cpu"): {"a": 2.0, "b": 1.0},
            ("node", "memory"): {"a": 4 * GIB, "b": 2 * GIB},
            ("node", "network-in"): {"a": 5e7, "b": 0.0},
            ("node", "time"): {"a": now - 10, "b": now - 12},
            ("pods-on", "cpu"): {"a": 1.5, "b": 0.75},
            ("pods-on", "memory"): {"a": 3 * GIB, "b": GIB},
            ("pods-on", "time"): {"a": now - 8, "b": now - 8},
            (PRESSURE, PRESSURE): {"a": 0.25, "b": 0.0},
            ("pod", "cpu"): {("lab", "one", "a"): 1.0, ("lab", "two", "b"): 0.5},
            ("pod", "memory"): {("lab", "one", "a"): GIB, ("lab", "two", "b"): GIB},
            ("pod", "time"): {("lab", "one", "a"): now - 7, ("lab", "two", "b"): now - 7},
        }
        self.status, self.reply_headers = 200, {}
        self.extra, self.body, self.skew, self.wait, self.drip = {}, None, 0.0, 0.0, 0.0
        self.node_label = "node"
        self.requests = []
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def server_close(self):
        self.shutdown()
        super().server_close()

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    def set(self, who, name, key, value):
        self.values.setdefault((who, name), {})[key] = value

    def answer(self, query):
        result, now = [], time.time() + self.skew
        for template, tag in _PART.findall(query):
            name = template.strip("()").split("(")[-1].split("_")[-1]
            who = tag if tag in ("node", "pods-on", PRESSURE) else "pod"
            for key, value in self.values.get((who, name), {}).items():
                labels = (
                    {self.node_label: key}
                    if who != "pod"
                    else dict(zip(("namespace", "pod", "node"), key, strict=True))
                )
                for number, one in enumerate(value if isinstance(value, list) else [value]):
                    copy = {"replica": str(number)} if isinstance(value, list) else {}
                    result.append({"metric": {**labels, **copy, "dovetail": tag}, "value": [now, str(one)]})
        return {"status": "success", "data": {"resultType": "vector", "result": result}, **self.extra}


class FakeHistory(FakePrometheus):
    """Says its values at every step of a range, none before `from_time`."""

    from_time = 0.0

    def answer(self, query):
        path, _, form = self.requests[-1]
        assert path == "/api/v1/query_range"
        start, end, step = (float(form[name]) for name in ("start", "end", "step"))
        times = [
            at
            for at in [start + step * number for number in range(round((end - start) / step) + 1)]
            if at >= self.from_time
        ]
        reply = super().answer(query)
        result = [
            {"metric": one["metric"], "values": [[at, one["value"][1]] for at in times]}
            for one in reply["data"]["result"]
            if times
        ]
        return {**reply, "data": {"resultType": "matrix", "result": result}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        server = self.server
        form = {
            key: value
            for key, (value,) in parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()).items()
        }
        server.requests.append((self.path, dict(self.headers), form))
        time.sleep(server.wait)
        body = json.dumps(server.answer(form["query"])).encode() if server.body is None else server.body
        self.send_response(server.status)
        for name, value in {"Content-Length": str(len(body)), **server.reply_headers}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            if not server.drip:
                self.wfile.write(body)
                return
            for byte in body:
                self.wfile.write(bytes([byte]))
                time.sleep(server.drip)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def log_message(self, *args):
        pass


def source(url, *, seconds=5.0, access=None, labels=("node", "instance"), pressure=False, **more):
    """Return what reads this Prometheus, by templates that the fake understands."""
    queries = Queries(
        60,
        labels,
        nodes={name: f"N_{name}" for name in NAMES},
        pods={name: f"P_{name}" for name in (*NAMES, PRESSURE)},
        **more,
    )
    return Prometheus(Access(url, access or UsageAccess()), queries, STALE, pressure, look_seconds=seconds)

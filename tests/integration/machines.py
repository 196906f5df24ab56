"""An exporter that plays node-exporters and kubelets of nodes whose pods use what the test says, for a real Prometheus.

Pods that run are read from the API server at each scrape, so what Prometheus sees follows what control does.
"""

import json
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lab.controlplane import workload
from tests.integration.dovetail import amounts

GIB = 2.0**30
REGULAR_REQUESTS = "dovetail.dev/regular-requests"


def declared(pod):
    """Return what a pod of one container asks for as a regular one, in millicores and bytes."""
    written = pod["metadata"].get("annotations", {}).get(REGULAR_REQUESTS)
    if written is None:
        return amounts(pod["spec"]["containers"][0]["resources"].get("requests", {}))
    return amounts(json.loads(written)["containers"]["main"])


class Machines(ThreadingHTTPServer):
    """`part` says which part of what it declares a pod uses; while `frozen`, all stays as it was.

    `system` says how many millicores a node uses that are no pod's.
    `most` is the most that each node used so far, in millicores and bytes.
    """

    def __init__(self, client):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.client = client
        self.begin(lambda _pod: 1.0)
        self.frozen = False
        self._cpu_seconds = defaultdict(float)
        self._at = time.time()
        self._text = ""
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"127.0.0.1:{self.server_port}"

    def begin(self, part):
        """Let pods use by this from now on."""
        self.part, self.most, self.system = part, {}, {}

    def text(self):
        with self._lock:
            if not self.frozen:
                self._text = self._look()
            return self._text

    def close(self):
        self.shutdown()
        self.server_close()

    def _look(self):
        nodes = [node["metadata"]["name"] for node in workload.nodes(self.client)]
        running = [pod for pod in workload.pods(self.client) if pod["status"]["phase"] == "Running"]
        now = time.time()
        seconds, self._at = now - self._at, now
        used = {name: {"cpu": 1.0 + self.system.get(name, 0.0), "memory": 1.0} for name in nodes}
        lines = []
        for pod in running:
            name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
            if node not in used:
                continue
            use = {dimension: amount * self.part(pod) for dimension, amount in declared(pod).items()}
            for dimension, amount in use.items():
                used[node][dimension] += amount
            self._cpu_seconds[name] += seconds * use["cpu"] / 1000
            labels = f'node="{node}",namespace="{pod["metadata"]["namespace"]}",pod="{name}",container="main"'
            lines.append(f"container_cpu_usage_seconds_total{{{labels}}} {self._cpu_seconds[name]}")
            lines.append(f"container_memory_working_set_bytes{{{labels}}} {use['memory']}")
        for node in nodes:
            self._cpu_seconds[node, "user"] += seconds * used[node]["cpu"] / 1000
            self._cpu_seconds[node, "idle"] += seconds * max(8 - used[node]["cpu"] / 1000, 0.0)
            for mode in ("user", "idle"):
                each = self._cpu_seconds[node, mode] / 8
                lines += [
                    f'node_cpu_seconds_total{{node="{node}",cpu="{cpu}",mode="{mode}"}} {each}' for cpu in range(8)
                ]
            lines.append(f'node_memory_MemTotal_bytes{{node="{node}"}} {64 * GIB}')
            lines.append(f'node_memory_MemAvailable_bytes{{node="{node}"}} {64 * GIB - used[node]["memory"]}')
            for dimension, amount in used[node].items():
                self.most[node, dimension] = max(self.most.get((node, dimension), 0.0), amount)
        milliseconds = round(1000 * now)
        return "".join(f"{line} {milliseconds}\n" for line in lines)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            body, status = self.server.text().encode(), 200
        except Exception as error:  # the API server is not there (any more)
            body, status = repr(error).encode(), 500
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

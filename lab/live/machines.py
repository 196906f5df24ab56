"""An exporter that plays node-exporters and kubelets for a real Prometheus, of nodes whose pods use what it is told.

Pods that run are read from the API server at each scrape, so what Prometheus sees follows what `control` does.
"""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kubernetes.client import ApiClient
from kubernetes.utils import parse_quantity

from extender.cluster.resources import CPU, DISK_READ, DISK_WRITE, MEMORY
from lab.controlplane import workload
from lab.controlplane.builders import Manifest

GIB = 2.0**30
REGULAR_REQUESTS = "dovetail.dev/regular-requests"

Use = Mapping[str, float]
"""What a pod uses, by dimension: millicores, bytes, and bytes per second."""

_NODE_CORES, _NODE_MEMORY = 8, 64 * GIB
_DISKS = {
    DISK_READ: ("node_disk_read_bytes_total", "container_fs_reads_bytes_total"),
    DISK_WRITE: ("node_disk_written_bytes_total", "container_fs_writes_bytes_total"),
}


def amounts(quantities: Mapping[str, Any]) -> dict[str, float]:
    """Return CPU in millicores and memory in bytes, read by nothing of ours."""
    read = {
        name: parse_quantity(quantities[name])  # type: ignore[no-untyped-call]
        for name in (CPU, MEMORY)
        if name in quantities
    }
    return {name: float(amount * 1000 if name == CPU else amount) for name, amount in read.items()}


def declared(pod: Manifest) -> dict[str, float]:
    """Return what a pod of one container asks for as a regular one, in millicores and bytes."""
    written = pod["metadata"].get("annotations", {}).get(REGULAR_REQUESTS)
    if written is None:
        return amounts(pod["spec"]["containers"][0]["resources"].get("requests", {}))
    return amounts(json.loads(written)["containers"]["main"])


class UsageServer(ThreadingHTTPServer):
    """`use` says what a pod uses; of nodes and pods the `dimensions` are exported. While `frozen`, all stays as it was.

    `system` says how many millicores a node uses that are no pod's.
    `most` is the most that each node used so far, by node and dimension.
    """

    def __init__(
        self,
        client: ApiClient,
        use: Callable[[Manifest], Use],
        *,
        dimensions: tuple[str, ...] = (CPU, MEMORY),
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.client, self._dimensions = client, dimensions
        self.begin(use)
        self.frozen = False
        self._counters: dict[tuple[str, ...], float] = defaultdict(float)
        self._at = time.time()
        self._text = ""
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """Return host and port."""
        return f"127.0.0.1:{self.server_port}"

    def begin(self, use: Callable[[Manifest], Use]) -> None:
        """Let pods use by this from now on, and forget what was the most."""
        self._use = use
        self.most: dict[tuple[str, str], float] = {}
        self.system: dict[str, float] = {}

    def text(self) -> str:
        """Return the metrics as they are now."""
        with self._lock:
            if not self.frozen:
                self._text = self._look()
            return self._text

    def close(self) -> None:
        """Stop."""
        self.shutdown()
        self.server_close()

    def _look(self) -> str:
        nodes = [node["metadata"]["name"] for node in workload.nodes(self.client)]
        running = [pod for pod in workload.pods(self.client) if pod["status"]["phase"] == "Running"]
        now = time.time()
        seconds, self._at = now - self._at, now
        used = {name: dict.fromkeys(self._dimensions, 1.0) for name in nodes}
        for name in self.system.keys() & used.keys():
            used[name][CPU] += self.system[name]
        lines: list[str] = []
        for pod in running:
            node = used.get(pod["spec"]["nodeName"])
            if node is None:
                continue
            use = {name: amount for name, amount in self._use(pod).items() if name in node}
            for name, amount in use.items():
                node[name] += amount
            lines += self._of_pod(pod, use, seconds)
        for name, use in used.items():
            lines += self._of_node(name, use, seconds)
            for dimension, amount in use.items():
                self.most[name, dimension] = max(self.most.get((name, dimension), 0.0), amount)
        milliseconds = round(1000 * now)
        return "".join(f"{line} {milliseconds}\n" for line in lines)

    def _of_pod(self, pod: Manifest, use: Use, seconds: float) -> Iterator[str]:
        name, node, space = pod["metadata"]["name"], pod["spec"]["nodeName"], pod["metadata"]["namespace"]
        labels = f'node="{node}",namespace="{space}",pod="{name}",container="main"'
        for dimension, amount in use.items():
            if dimension == CPU:
                yield f"container_cpu_usage_seconds_total{{{labels}}} {self._sum((name, CPU), seconds * amount / 1000)}"
            elif dimension == MEMORY:
                yield f"container_memory_working_set_bytes{{{labels}}} {amount}"
            else:
                total = self._sum((name, dimension), seconds * amount)
                yield f'{_DISKS[dimension][1]}{{{labels},device="/dev/sda"}} {total}'

    def _of_node(self, node: str, use: Use, seconds: float) -> Iterator[str]:
        for dimension, amount in use.items():
            if dimension == CPU:
                busy = self._sum((node, "user"), seconds * amount / 1000)
                idle = self._sum((node, "idle"), seconds * max(_NODE_CORES - amount / 1000, 0.0))
                for mode, total in (("user", busy), ("idle", idle)):
                    for cpu in range(_NODE_CORES):
                        labels = f'node="{node}",cpu="{cpu}",mode="{mode}"'
                        yield f"node_cpu_seconds_total{{{labels}}} {total / _NODE_CORES}"
            elif dimension == MEMORY:
                yield f'node_memory_MemTotal_bytes{{node="{node}"}} {_NODE_MEMORY}'
                yield f'node_memory_MemAvailable_bytes{{node="{node}"}} {_NODE_MEMORY - amount}'
            else:
                total = self._sum((node, dimension), seconds * amount)
                yield f'{_DISKS[dimension][0]}{{node="{node}",device="sda"}} {total}'

    def _sum(self, key: tuple[str, ...], more: float) -> float:
        self._counters[key] += more
        return self._counters[key]


class _Handler(BaseHTTPRequestHandler):
    server: UsageServer

    def do_GET(self) -> None:
        try:
            body, status = self.server.text().encode(), 200
        except Exception as error:  # the API server is not there (any more)
            body, status = repr(error).encode(), 500
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        with suppress(ConnectionError):  # whoever asked does not wait any more
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass

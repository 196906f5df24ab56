"""An exporter that plays node-exporters and kubelets of a few nodes for a real Prometheus."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GIB = 2.0**30
WAITS = (("one", 0.3, 0.0), ("two.x", 0.6, 0.0), ("two-x", 0.05, 0.0), ("three", 0.2, 0.15))
"""For which part of the time a pod's first container waits for CPU, and for which of that by its own limit."""
INSTANCES = (("10.0.0.1:9100", 3.0), ("10.0.0.2:9100", 1.0))
"""What the nodes a and b are called by their node-exporters, and how many cores are busy there."""


class Exporter(ThreadingHTTPServer):
    """Plays node-exporters and kubelets of two nodes: counters grow by their rates with the time."""

    def __init__(self, instances=INSTANCES):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.begun = time.time()
        self.instances = instances
        self.gone, self.ended = set(), set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"127.0.0.1:{self.server_port}"

    def text(self):
        now = time.time()
        since = now - self.begun
        lines = []
        for node, busy in self.instances:
            if node in self.gone:
                continue
            at = f'instance="{node}"'
            for cpu in range(8):
                lines.append(f'node_cpu_seconds_total{{{at},cpu="{cpu}",mode="user"}} {since * busy / 8}')
                lines.append(f'node_cpu_seconds_total{{{at},cpu="{cpu}",mode="iowait"}} {since / 8}')
                lines.append(f'node_cpu_seconds_total{{{at},cpu="{cpu}",mode="idle"}} {since * (7 - busy) / 8}')
            lines.append(f"node_memory_MemTotal_bytes{{{at}}} {16 * GIB}")
            lines.append(f"node_memory_MemAvailable_bytes{{{at}}} {12 * GIB}")
            for device in ("sda", "sda1", "dm-0", "md0", "loop3"):
                lines.append(f'node_disk_read_bytes_total{{{at},device="{device}"}} {since * 5e6}')
                lines.append(f'node_disk_written_bytes_total{{{at},device="{device}"}} {since * 1e6}')
            for device in ("eth0", "lo", "veth12ab", "cni0", "bond0", "eth0.100"):
                lines.append(f'node_network_receive_bytes_total{{{at},device="{device}"}} {since * 2e6}')
                lines.append(f'node_network_transmit_bytes_total{{{at},device="{device}"}} {since * 3e6}')
        pods = (("a", "one", 1.0, 2.0), ("a", "two.x", 0.5, 1.0), ("b", "three", 0.25, 0.5), ("a", "two-x", 0.1, 0.1))
        for node, pod, cpu, gib in pods:
            if node in self.gone or pod in self.ended:
                continue
            of = f'node="{node}",namespace="lab",pod="{pod}"'
            for container, part in (("main", 0.75), ("side", 0.25), ("", 1.0)):
                lines.append(f'container_cpu_usage_seconds_total{{{of},container="{container}"}} {since * cpu * part}')
                lines.append(f'container_memory_working_set_bytes{{{of},container="{container}"}} {gib * part * GIB}')
                waits, by_limit = next(found for name, *found in WAITS if name == pod)
                # The whole pod (no container) waits longer than any of its containers.
                waits *= {"main": 1.0, "side": 0.5, "": 1.5}[container]
                lines.append(
                    f'container_pressure_cpu_waiting_seconds_total{{{of},container="{container}"}} {since * waits}'
                )
                if by_limit and container == "main":
                    lines.append(
                        f'container_cpu_cfs_throttled_seconds_total{{{of},container="main"}} {since * by_limit}'
                    )
                for device in ("/dev/sda", "/dev/dm-0"):
                    labels = f'{of},container="{container}",device="{device}"'
                    lines.append(f"container_fs_reads_bytes_total{{{labels}}} {since * 1e6 * part}")
            lines.append(f'container_network_receive_bytes_total{{{of},interface="eth0"}} {since * 1e5}')
        # A pod that ended: kubelets give each sample a time, so Prometheus finds its last one for five minutes.
        ended = 'node="a",namespace="lab",pod="ended",container="main"'
        lines.append(f"container_memory_working_set_bytes{{{ended}}} {5 * GIB} {round(1000 * (self.begun - 1))}")
        # A pod on the host's network shows the host's.
        of = 'node="a",namespace="lab",pod="on-host"'
        for interface in ("eth0", "cni0", "veth12ab"):
            lines.append(f'container_network_receive_bytes_total{{{of},interface="{interface}"}} {since * 2e6}')
        return "\n".join(lines) + "\n"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.server.text().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

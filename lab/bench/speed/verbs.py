"""How long the verbs take over a kept-alive loopback connection, beside a handler that only decodes and encodes.

A process of its own runs the service's own server, verbs and ledger, filled with nodes and pods; no API server is
needed. Between two rounds the pod asked about lands, as a binding does. `chosen` is filter where it chooses the node
itself: then nobody calls prioritize. Each time it is asked about another pod.
"""

import contextlib
import json
import multiprocessing
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
import numpy as np
from rich.table import Table

from extender.adapters.http import wire
from extender.adapters.http.choosing import Chooser
from extender.adapters.http.routes import create_app
from extender.adapters.http.server import Server
from extender.adapters.http.verbs import Verbs
from extender.adapters.kube.decoding import pod_from
from extender.adapters.kube.objects import PodObject
from extender.adapters.metrics.serve import ServeMetrics
from extender.app.logs import configure_logs
from extender.cluster.eligibility import ANYWHERE, Constraints
from extender.cluster.events import NodesListed, PodsListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, Pod
from extender.cluster.resources import CPU, IO_DIMENSIONS, MEMORY
from extender.cluster.services import Services
from extender.settings import LogSettings, ServerSettings
from extender.verdict import Placement, Ranker
from lab.report.rows import Report, Row

SIZES = (100, 500, 1_000, 5_000)
VERBS = ("filter", "prioritize", "chosen", "floor")
WITH_DEVICES = (500, 5_000)
"""At these sizes it is tried with GPUs as well: on each node, of four models. Most pods there ask for one."""

_GPU, _MODEL, _MODELS = "nvidia.com/gpu", "gpu-model", ("a", "b", "c", "d")
_PODS_PER_NODE = 8
_GIB = 2.0**30
_UID = b'"asked"'


@dataclass(frozen=True, slots=True)
class VerbTiming:
    """Seconds of one verb at one size."""

    verb: str
    nodes: int
    p50: float
    p99: float
    devices: bool = False

    @property
    def scene(self) -> str:
        """Return what the ids of its rows end with."""
        return f"{'devices.' if self.devices else ''}{self.nodes}"


def measure(
    sizes: Sequence[int], calls: int, progress: Callable[[], None], *, devices: bool = False
) -> Iterator[VerbTiming]:
    """Yield the timings of all VERBS at each size, called in turn so that noise hits all alike.

    With `devices` nodes have GPUs, and pods there and the one asked about ask for them.
    """
    for nodes in sizes:
        rounds = calls + calls // 10
        with _serving(nodes, rounds, devices) as port:
            seconds = _call_in_turn(port, nodes, rounds, _pod(devices), progress)
        for verb in VERBS:
            p50, p99 = np.percentile(seconds[verb], (50, 99))
            yield VerbTiming(verb, nodes, float(p50), float(p99), devices)


def report(timings: Sequence[VerbTiming]) -> Report:
    """Return the rows and the table: milliseconds, and how many times the floor the dearer verb costs at p50."""
    rows: list[Row] = []
    table = Table(title="Milliseconds a call, over a kept-alive loopback connection")
    for heading in ("nodes", "GPUs", *(text for verb in VERBS for text in (f"{verb} p50", "p99")), "ratio", "chosen"):
        table.add_column(heading, justify="right")
    for devices, nodes in sorted({(timing.devices, timing.nodes) for timing in timings}):
        at = {timing.verb: timing for timing in timings if (timing.devices, timing.nodes) == (devices, nodes)}
        scene = at["floor"].scene
        floor = at["floor"].p50
        ratio, chosen = max(at["filter"].p50, at["prioritize"].p50) / floor, at["chosen"].p50 / floor
        cells = [f"{nodes:,}", "yes" if devices else ""]
        for verb in VERBS:
            for name in ("p50", "p99"):
                milliseconds = getattr(at[verb], name) * 1000
                rows.append(Row(f"{verb}_{name}_ms.{scene}", round(milliseconds, 3), "ms"))
                cells.append(f"{milliseconds:.2f}")
        rows.append(Row(f"ratio.{scene}", round(ratio, 3), "times", note="the dearer verb's p50 over the floor's"))
        rows.append(Row(f"ratio.chosen.{scene}", round(chosen, 3), "times", note="filter that chooses, over the floor"))
        table.add_row(*cells, f"{ratio:.2f}", f"{chosen:.2f}")
    table.caption = (
        "chosen: filter where it chooses the node; floor: the same server decodes the request and returns all nodes; "
        "ratio: the dearer of filter and prioritize / floor, p50; then chosen / floor"
    )
    return Report(rows, [table])


def _call_in_turn(
    port: int, nodes: int, rounds: int, pod: bytes, progress: Callable[[], None]
) -> dict[str, list[float]]:
    names = json.dumps(np.random.default_rng(1).permutation(_names(nodes)).tolist()).encode()
    asked = b'{"Pod":' + pod + b',"Nodes":null,"NodeNames":' + names + b"}"
    warm = rounds // 11
    seconds: dict[str, list[float]] = {verb: [] for verb in VERBS}
    with contextlib.ExitStack() as stack:
        connections = {verb: stack.enter_context(_connect(port)) for verb in VERBS}
        for number in range(rounds):
            for verb, connection in connections.items():
                body = asked.replace(_UID, _uid(number)) if verb == "chosen" else asked
                took = _call(connection, verb, body)
                if number >= warm:
                    seconds[verb].append(took)
                _call(connections["floor"], "land", _uid(number).strip(b'"'))
            progress()
    return seconds


def _connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _call(connection: socket.socket, verb: str, body: bytes) -> float:
    """Return the seconds from the first byte sent to the last byte read."""
    head = f"POST /{verb} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    message = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    started = time.perf_counter()
    connection.sendall(message)
    reply = connection.recv(2**20)
    ends = reply.index(b"\r\n\r\n") + 4
    if not reply.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(reply[:300].decode(errors="replace"))
    length = int(reply[:ends].lower().split(b"content-length:")[1].split(b"\r\n")[0])
    missing = length - (len(reply) - ends)
    while missing > 0:
        missing -= len(connection.recv(2**20))
    return time.perf_counter() - started


@contextlib.contextmanager
def _serving(nodes: int, rounds: int, devices: bool) -> Iterator[int]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(nodes, rounds, devices, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join(5)


def _serve(nodes: int, rounds: int, devices: bool, ready: Connection) -> None:
    """Run the service's server in this process, with one more path: `/floor`."""
    sys.stderr = Path("/dev/null").open("w")  # noqa: SIM115 - lasts as long as the process; one line per call is written
    configure_logs(LogSettings())
    ledger, ranker = _filled_ledger(nodes, rounds, devices), Ranker(Placement())
    verbs, chooses = (
        Verbs(
            ledger=ledger,
            ranker=ranker,
            rules=(),
            readiness=_AlwaysReady(),
            warner=_Silent(),
            metrics=ServeMetrics("bench"),
            wait_seconds=0.5,
            chooser=chooser,
        )
        for chooser in (None, Chooser(ledger, ranker, Services()))
    )
    more = {"chosen": chooses.filter, "floor": _floor, "land": lambda body: _land(ledger, body.decode())}
    app = create_app(verbs, more=more)
    server = Server(app, ServerSettings(port=0))
    ready.send(server.port)
    server.run()


def _floor(body: bytes) -> bytes:
    """Decode the request and return all nodes unchanged: what any extender in this server costs."""
    return wire.encode(wire.FilterReply(node_names=wire.decode(body).names))


def _land(ledger: Ledger, uid: str) -> bytes:
    """Take the pods out of flight, as the watch does when it shows the binding; between calls, not in one."""
    ledger.forget("asked")
    ledger.forget(uid)
    return b"{}"


def _uid(number: int) -> bytes:
    """Return the UID, as JSON, of the pod that `chosen` is asked about in a round."""
    return b'"asked-%d"' % number


def _filled_ledger(nodes: int, rounds: int, devices: bool) -> Ledger:
    """Return a ledger of nodes of three shapes, each with pods that leave room, and the pods that are asked about."""
    draw = np.random.default_rng(0)
    ledger = Ledger(in_flight_seconds=15.0)
    cores = draw.choice((16, 32, 64), nodes)
    names = _names(nodes)
    models = {name: _MODELS[row % len(_MODELS)] if devices else "" for row, name in enumerate(names)}
    more = dict.fromkeys(IO_DIMENSIONS, 1e9) | ({_GPU: 8.0} if devices else {})
    ledger.apply(
        NodesListed(
            [
                Node(n, {CPU: c * 1000.0, MEMORY: c * 4 * _GIB, **more}, labels={_MODEL: models[n]})
                for n, c in zip(names, cores, strict=True)
            ]
        )
    )
    pods = []
    for number, name in enumerate(names * _PODS_PER_NODE):
        io = {dimension: float(draw.integers(1, 10**8)) for dimension in IO_DIMENSIONS}
        demand = {CPU: float(draw.integers(100, 1500)), MEMORY: float(draw.integers(1, 5)) * _GIB, **io}
        turn = number // nodes
        if devices and turn in _ASKING:
            demand[_GPU] = 1.0
        bound = Constraints(selector=((_MODEL, models[name]),)) if devices and turn in _BOUND else ANYWHERE
        pods.append(
            Pod(uid=str(number), namespace="bench", name=f"pod-{number}", demand=demand, node=name, constraints=bound)
        )
    pod = _pod(devices)
    asked = [pod, *(pod.replace(_UID, _uid(number)) for number in range(rounds))]
    pods += [pod_from(msgspec.json.decode(document, type=PodObject)) for document in asked]
    ledger.apply(PodsListed(pods))
    return ledger


_ASKING, _BOUND = range(6), range(3)
"""Of the pods of a node, which ask for a GPU, and which are bound to its model."""


def _names(nodes: int) -> list[str]:
    return [f"node-{number:05d}" for number in range(nodes)]


class _AlwaysReady:
    def wait(self, seconds: float) -> bool:  # noqa: ARG002 - the port's signature
        return True

    def problem(self) -> str | None:
        return None

    def flight_time(self) -> float:
        return time.monotonic()


class _Silent:
    def warn(self, kind: str, namespace: str, name: str, uid: str, message: str, owner: str = "") -> None:
        """Say nothing."""


def _pod(devices: bool) -> bytes:
    """Return the pod that is asked about, as the API server writes it."""
    requests = {"cpu": "500m", "memory": "2Gi"} | ({_GPU: "1"} if devices else {})
    return msgspec.json.encode(
        {
            "metadata": {
                "name": "asked",
                "namespace": "bench",
                "uid": "asked",
                "resourceVersion": "1",
                "annotations": {"dovetail.dev/demand": '{"network-in": "20M", "disk-read": "50Mi"}'},
            },
            "spec": {
                "containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}],
                "schedulerName": "dovetail",
                "priority": 0,
            },
            "status": {"phase": "Pending", "qosClass": "Burstable"},
        }
    )

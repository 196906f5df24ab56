"""Bad requests to the extender: each is refused with a reason, changes nothing, and the next good one is answered."""

import contextlib
import json
import socket
import threading

from extender.adapters.http.routes import create_app
from extender.adapters.http.server import Server
from extender.settings import ServerSettings
from tests.fuzz import draws
from tests.fuzz.broken import require
from tests.service.adapters.http.test_verbs import Extender, landed
from tests.service.adapters.http.test_verbs import pod as good_pod

EACH = 100
"""Requests a draw."""
_CONNECTIONS = 30
_VERBS = ("filter", "prioritize", "preempt")
_PATHS = ("/", "/bind", "/filter/", "//filter", "/filter?a=b", "/%00", "/filter/../preempt", "/metrics", "/livez", "/é")
_METHODS = ("GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "FILTER")
_TYPES = (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "\x7f", "a" * 500)
_ANSWERS = (200, 308, 400, 404, 405, 413, 415)
_SECONDS = 10.0


def requests(random, _size):
    """A hundred bad requests in a row, in process."""
    extender = _extender()
    asked = good_pod("good", network=30)
    rightly = [extender.filter(asked, "a", "b", "c"), extender.prioritize(asked, "a", "b", "c")]
    held = extender.ledger.snapshot(0.0).allocated.tolist()
    for _ in range(EACH):
        before = _flights(extender)
        method, path, body, kind = _bad(random)
        reply = extender.client.open(path, method=method, data=body, content_type=kind)
        _require_answered(method, path, body, reply.status_code, reply.get_data())
        if reply.status_code != 200:
            require(_flights(extender) == before, "a refused request changes what is in flight", f"{path} {body[:500]}")
        elif path == "/filter" and method == "POST":
            _require_each_once(body, reply.get_json())
    require(extender.ledger.snapshot(0.0).allocated.tolist() == held, "a request changes what is allocated")
    extender.clock.now += 1_000.0
    again = [extender.filter(asked, "a", "b", "c"), extender.prioritize(asked, "a", "b", "c")]
    require(again == rightly, "a good request gets another answer", lambda: f"{again}, before: {rightly}")


def sockets(random, _size):
    """Bad bytes on real connections; the server goes on, and answers the next good request."""
    extender = _extender()
    body = json.dumps({"Pod": good_pod("good", network=30), "NodeNames": ["a", "b"]}).encode()
    with _serving(extender) as port:
        for _ in range(_CONNECTIONS):
            _send(random, port, body)
        with socket.create_connection(("127.0.0.1", port), timeout=_SECONDS) as connection:
            connection.sendall(_head("/filter", len(body)) + body)
            reply = connection.recv(65_536)
    require(reply.startswith(b"HTTP/1.1 200 "), "after bad bytes a good request is not answered", repr(reply[:300]))


def _extender():
    extender = Extender("a", "b", "c")
    for event in (landed("old", "b", network=60.0), landed("lower", "c", cpu=4000.0, priority=-5)):
        extender.ledger.apply(event)
    return extender


def _flights(extender):
    look = extender.ledger.snapshot(extender.clock.now)
    return look.flights, look.in_flight.tolist()


def _require_answered(method, path, body, status, text):
    shown = f"{method} {path} {status} {text[:300]!r}: {body[:700]!r}"
    require(status in _ANSWERS, f"an answer is {status}", shown)
    if status != 200 and method != "HEAD" and path[1:] in _VERBS and method == "POST":
        require(len(json.loads(text)["Error"]) > 20, "a refusal has no reason", shown)


def _require_each_once(body, reply):
    """Each node that was asked about is passed or refused, once."""
    with contextlib.suppress(ValueError):  # what is skipped may be anything
        asked = json.loads(body.decode("utf-8", "replace")).get("NodeNames")
        if asked is None:
            return
        told = [*(reply["NodeNames"] or ()), *reply["FailedNodes"], *reply["FailedAndUnresolvableNodes"]]
        require(sorted(told) == sorted(asked), "a node is not answered once", lambda: f"{body[:700]!r}: {reply}")


def _bad(random):
    """Return method, path, body and content type of a request of which something is mostly wrong."""
    verb = random.choice(_VERBS)
    body, kind = _body(random, verb), "application/json"
    method, path = "POST", f"/{verb}"
    odd = random.random()
    if odd < 0.05:
        method = random.choice(_METHODS)
    elif odd < 0.1:
        path = random.choice((*_PATHS, "/" + "x" * 5_000))
    elif odd < 0.15:
        kind = random.choice(_TYPES)
    return method, path, body, kind


def _body(random, verb):
    tree = _args(random, verb)
    kind = random.random()
    if kind < 0.35:
        return json.dumps(draws.mutated(random, tree, random.choice((1, 1, 3)))).encode()
    text = json.dumps(tree)
    if kind < 0.55:
        return draws.garbled(random, text.encode())
    if kind < 0.65:
        return text[: random.randrange(len(text))].encode()
    if kind < 0.72:
        return json.dumps(draws.value(random)).encode()
    if kind < 0.8:
        twice = random.choice(('"Pod":{"metadata":{"uid":"uid-good"}},', '"NodeNames":["a","a"],', '"NodeNames":null,'))
        return (text[:1] + twice + text[1:]).encode()
    if kind < 0.85:
        return random.randbytes(random.choice((0, 1, 100, 5_000)))
    if kind < 0.9:
        opened = random.choice((b"[", b'{"Pod":', b'{"Pod":{"spec":{"containers":[', b'{"Nodes":{"items":['))
        return opened * random.choice((50, 2_000, 20_000))
    if kind < 0.95:
        return text.encode(random.choice(("utf-16", "utf-8-sig", "utf-32")))
    return text.replace('"', random.choice(("'", "\\u0022", '""')), random.randint(1, 5)).encode()


def _args(random, verb):
    """Return the arguments of a verb as kube-scheduler would send them, of a pod that may be known."""
    pod = draws.pod(random, random.choice(("good", "old", "x")))
    pod["metadata"]["uid"] = random.choice(("uid-good", "uid-old", "", "x"))
    names = random.choice((["a", "b", "c"], ["a"], ["a", "a"], ["gone"], ["gone", "gone"], [], [""], [*"abc", "gone"]))
    if verb == "preempt":
        violations = random.choice((0, 1, -1, 2**63, 1.5, "1"))
        meta = {name: {"Pods": [{"UID": "uid-lower"}, {"UID": "x"}], "NumPDBViolations": violations} for name in names}
        whole = {name: {"Pods": [{"metadata": {"uid": "uid-lower"}}]} for name in names}
        one, other = random.choice(((meta, None), (None, whole), (None, None), (meta, whole)))
        return {"Pod": pod, "NodeNameToMetaVictims": one, "NodeNameToVictims": other}
    if random.random() < 0.3:
        nodes = {"items": [draws.node(random, name) for name in names]}
        return {"Pod": pod, "Nodes": random.choice((nodes, {"items": None}, None)), "NodeNames": None}
    return {"Pod": pod, "Nodes": None, "NodeNames": names}


@contextlib.contextmanager
def _serving(extender):
    server = Server(create_app(extender.verbs), ServerSettings(port=0, drain_seconds=0.0))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server.port
    finally:
        server.stop()
        thread.join(_SECONDS)
        require(not thread.is_alive(), "the server does not stop")


def _head(path, length, method="POST"):
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()


def _send(random, port, body):
    """Send something bad on a connection of its own; where it is whole, wait for what comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout=_SECONDS) as connection:
        kind = random.randrange(8)
        if kind == 0:  # half a body
            connection.sendall(_head("/filter", len(body)) + body[: random.randrange(len(body))])
            return
        if kind == 1:  # half a head
            connection.sendall(_head("/filter", 1)[: random.randrange(1, 30)])
            return
        if kind == 2:
            bad = random.choice((b"-1", b"1e3", b"99999999999999999999", b"0x10", b"", b"1, 2"))
            sent = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: " + bad + b"\r\n\r\n"
        elif kind == 3:
            sent = (
                b"POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
                + body
                + b"\r\n0\r\n\r\n"
            )
        elif kind == 4:
            sent = random.randbytes(200).replace(b"\n", b"x") + b"\r\n\r\n"
        elif kind == 5:
            method, path, wrong, _ = _bad(random)
            sent = _head(path.encode("ascii", "replace").decode(), len(wrong), method) + wrong
        elif kind == 6:
            sent = b"POST /filter HTTP/9.9\r\n" + b"a: b\r\n" * random.choice((1, 500)) + b"\r\n"
        else:
            sent = _head("/filter", len(body)) * 3 + body
        with contextlib.suppress(ConnectionError):
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            reply = connection.recv(65_536)
            bad = reply.startswith((b"HTTP/1.0 500", b"HTTP/1.1 500"))
            require(not bad, "bytes on a connection make a 500", f"{sent[:300]!r}: {reply[:500]!r}")

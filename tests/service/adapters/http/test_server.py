"""The HTTP server as a client on a socket sees it."""

import contextlib
import socket
import threading
import time

import pytest
from flask import Flask, Response, request

from extender.adapters.http import listening
from extender.adapters.http.server import Server
from extender.errors import DovetailError
from extender.settings import ServerSettings as Settings


def app():
    made = Flask("test")

    @made.post("/echo")
    def echo():
        return Response(request.get_data(), mimetype="application/json")

    @made.post("/slow")
    def slow():
        time.sleep(0.6)
        return Response(b"late", mimetype="text/plain")

    return made


@contextlib.contextmanager
def running(served=None, *, connections=50, request_seconds=10.0, **settings):
    bounds = {"connections": connections, "request_seconds": request_seconds}
    server = Server(served or app(), Settings(port=0, **settings), **bounds)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(10)
        assert not thread.is_alive()


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=5)


def post(connection, path, body):
    connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


def read_reply(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        assert part, "the connection was closed"
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return head, body


def test_head_and_body_of_a_reply_come_in_one_write_with_their_length():
    with running() as server, connect(server) as connection:
        for size in (1, 100, 20_000):
            post(connection, "/echo", b"x" * size)
            first = connection.recv(1_000_000)
            head, _, body = first.partition(b"\r\n\r\n")
            assert f"content-length: {size}".encode() in head.lower()
            assert body == b"x" * size, "one read gets all that one write sent"


def test_a_large_reply_arrives_whole():
    with running(max_body_bytes=10_000_000) as server, connect(server) as connection:
        post(connection, "/echo", b"y" * 9_500_000)
        assert len(read_reply(connection)[1]) == 9_500_000


def test_a_connection_is_kept_for_many_requests():
    with running() as server, connect(server) as connection:
        for number in range(50):
            post(connection, "/echo", str(number).encode())
            head, body = read_reply(connection)
            assert body == str(number).encode()
            assert b"connection: close" not in head.lower()


def test_requests_that_come_together_are_answered_in_their_order():
    with running() as server, connect(server) as connection:
        requests = [f"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n{number}" for number in range(5)]
        connection.sendall("".join(requests).encode())
        connection.sendall(requests[0].encode())
        said = b""
        while said.count(b"HTTP/1.1 200") < 6 or not said.endswith(b"\r\n\r\n0"):
            part = connection.recv(65536)
            assert part, "the connection was closed"
            said += part
        assert [reply[-1:] for reply in said.split(b"HTTP/1.1 200")[1:]] == [b"0", b"1", b"2", b"3", b"4", b"0"]


@pytest.mark.parametrize("pause", [0.0, 0.2], ids=["soon", "later"])
def test_the_next_request_of_a_connection_may_come_in_parts_soon_or_later(pause):
    with running() as server, connect(server) as connection:
        assert ask(connection) == b"hello"
        for _ in range(3):
            time.sleep(pause)
            connection.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\n")
            time.sleep(0.01)
            connection.sendall(b"Content-Length: 4\r\n\r\nab")
            time.sleep(0.01)
            connection.sendall(b"cd")
            assert read_reply(connection)[1] == b"abcd"


def test_the_thread_that_has_answered_a_connection_answers_what_comes_next_there(monkeypatch):
    monkeypatch.setattr(listening, "_KEPT_SECONDS", 10.0)
    service, handed_over = listening.Channel.service, []

    def count(channel):
        handed_over.append(channel)
        service(channel)

    monkeypatch.setattr(listening.Channel, "service", count)
    with running() as server, connect(server) as connection:
        for _ in range(20):
            assert ask(connection) == b"hello"
    # On a busy machine a reply may be read, and the next request come, before its thread has begun to wait there.
    assert len(handed_over) < 15


def test_connections_that_are_kept_shut_nobody_out_though_there_are_few_threads():
    with running(threads=2) as server, contextlib.ExitStack() as stack:
        others = [stack.enter_context(connect(server)) for _ in range(6)]
        for _ in range(5):
            assert [ask(other) for other in others] == [b"hello"] * 6


def test_whoever_goes_after_a_reply_leaves_no_connection_behind():
    with running() as server:
        for _ in range(10):
            with connect(server) as connection:
                assert ask(connection) == b"hello"
        limit = time.monotonic() + 10
        while server._server.active_channels and time.monotonic() < limit:
            time.sleep(0.01)
        assert not server._server.active_channels


def test_connections_outlive_those_that_kube_scheduler_keeps_idle():
    assert Settings().keep_alive_seconds > 90


def test_a_body_over_the_limit_is_refused_and_the_server_goes_on():
    with running(max_body_bytes=1024) as server:
        with connect(server) as connection:
            post(connection, "/echo", b"z" * 1025)
            assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")
        with connect(server) as connection:
            post(connection, "/echo", b"z" * 1024)
            assert read_reply(connection)[1] == b"z" * 1024


@pytest.mark.parametrize("digits", [4000, 5000, 100_000])
def test_a_content_length_of_thousands_of_digits_ends_its_connection_and_no_other(digits, caplog):
    with running() as server, connect(server) as other:
        with connect(server) as connection:
            connection.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * digits + b"\r\n\r\n")
            assert is_closed(connection)
        assert ask(other) == b"hello"
    assert not [
        record for record in caplog.records if record.name != "waitress.queue"
    ]  # where CPU is short, requests wait


def ask(connection, text=b"hello"):
    post(connection, "/echo", text)
    return read_reply(connection)[1]


def is_closed(connection):
    """Wait until the other end closes; what it says before that does not matter."""
    connection.settimeout(20)
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


PARTS = {
    "nothing": [],
    "half a head": [b"POST /echo HTTP/1.1\r\nHost: x\r\n"],
    "half a body": [b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345"],
    "half a chunk": [b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n12345"],
    "empty lines": [b"\r\n\r\n", b"\r\n"],
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_a_request_that_does_not_arrive_ends_its_connection(parts):
    with running(request_seconds=0.5) as server, connect(server) as connection:
        for part in parts:
            connection.sendall(part)
        assert is_closed(connection)


def test_a_request_that_arrives_byte_by_byte_ends_its_connection_however_long_it_goes_on():
    with running(request_seconds=0.5) as server, connect(server) as connection:
        assert ask(connection) == b"hello"
        connection.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nX-More: ")
        sent = 0
        with contextlib.suppress(ConnectionError):
            for sent in range(1_000):  # noqa: B007 - each is activity
                connection.sendall(b"x")
                time.sleep(0.02)
        assert sent < 999


def test_a_connection_at_rest_between_requests_is_kept():
    with running(request_seconds=0.1) as server, connect(server) as connection:
        assert ask(connection) == b"hello"
        time.sleep(2.5)  # the listener looks every second
        assert ask(connection) == b"hello"


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_half_open_connections_shut_nobody_out(part):
    with running(connections=20) as server, connect(server) as kept, contextlib.ExitStack() as stack:
        assert ask(kept) == b"hello"
        for _ in range(60):
            other = stack.enter_context(connect(server))
            for piece in part:
                other.sendall(piece)
        with connect(server) as new:
            assert ask(new) == b"hello"
        assert ask(kept) == b"hello", "those that have asked are closed last"
        assert len(server._server.active_channels) <= 22


def test_connections_at_rest_shut_nobody_out_either_and_the_oldest_goes_first():
    with running(connections=20) as server, contextlib.ExitStack() as stack:
        others = []
        for _ in range(40):
            others.append(stack.enter_context(connect(server)))
            assert ask(others[-1]) == b"hello"
        assert is_closed(others[0])
        assert ask(others[-1]) == b"hello"


def test_unfinished_requests_do_not_add_up():
    with running(max_body_bytes=2**18) as server, contextlib.ExitStack() as stack:
        head = f"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {2**18}\r\n\r\n".encode()
        for _ in range(24):
            other = stack.enter_context(connect(server))
            with contextlib.suppress(OSError):
                other.sendall(head + b"x" * (2**18 - 1))
        with connect(server) as new:
            assert ask(new) == b"hello"
        there = [channel.request for channel in server._server.channels() if channel.request is not None]
        assert sum(request.body_bytes_received for request in there) <= 8 * 2**18


def test_the_largest_body_fits_the_largest_pod_and_the_names_of_5_000_nodes():
    """A pod has 1.5 MiB at most, as etcd takes no more; each byte of it may be six in the JSON of Go ("<")."""
    names = 5_000 * 64
    assert 6 * 3 * 2**19 + names <= Settings().max_body_bytes == 10 * 2**20


def test_stop_answers_what_was_asked_and_takes_nothing_new():
    with running() as server, connect(server) as connection:
        post(connection, "/slow", b"")
        time.sleep(0.2)
        server.stop()
        assert read_reply(connection)[1] == b"late"
        time.sleep(0.3)
        with pytest.raises(ConnectionRefusedError):
            connect(server)


@pytest.mark.parametrize("pause_seconds", [0, 0.1])
def test_who_asks_one_question_after_the_other_is_told_at_the_end_that_the_connection_closes(pause_seconds):
    with running() as server, connect(server) as connection:
        for number in range(1000):
            if number == 10:
                server.stop()
            post(connection, "/echo", b"hello")
            head, body = read_reply(connection)
            assert body == b"hello"
            if b"connection: close" in head.lower():
                break
            time.sleep(pause_seconds)
        assert number >= 10
        assert connection.recv(1) == b""


def test_a_connection_is_closed_as_soon_as_nobody_reads_it_any_more_however_long_threads_take_to_end(monkeypatch):
    with running(drain_seconds=0) as server, connect(server) as connection:
        assert ask(connection)
        ended = threading.Event()
        monkeypatch.setattr(server._server.task_dispatcher, "shutdown", lambda **_: ended.wait(5))
        server.stop()
        try:
            connection.settimeout(2)
            assert connection.recv(1) == b""
        finally:
            ended.set()


def test_stop_does_not_wait_longer_than_it_may():
    with running(drain_seconds=0.1) as server, connect(server) as connection:
        post(connection, "/slow", b"")
        time.sleep(0.2)
        server.stop()


def test_a_port_that_is_taken_is_named_with_what_to_set():
    with running() as server, pytest.raises(DovetailError, match=rf"127.0.0.1:{server.port}: .*set server.address"):
        Server(app(), Settings(port=server.port))


class Threads:
    """Stands for the server: says in turn whether it has idle threads, and notes which connections were handed over."""

    def __init__(self, *idle):
        self.keeping, self.idle, self.woken = threading.local(), iter(idle), 0

    def has_idle_threads(self):
        return next(self.idle)

    def pull_trigger(self):
        self.woken += 1


def channel_of(server, *requests):
    channel = listening.Channel.__new__(listening.Channel)
    channel.server, channel.requests = server, [*requests]
    return channel


def test_a_request_is_answered_by_one_thread_though_another_has_just_answered_the_one_before(monkeypatch):
    channel, answered = channel_of(Threads(False, True), "first"), []
    taken, go_on = threading.Event(), threading.Event()

    def answer(self):
        answered.append(self.requests[0])
        if self.requests == ["second"]:
            taken.set()
            assert go_on.wait(5)
        self.requests.pop(0)
        if answered == ["first"]:  # its answer is out, and the next request comes and is taken by another thread
            self.requests.append("second")
            other.start()
            assert taken.wait(5)

    monkeypatch.setattr(listening.HTTPChannel, "service", answer)
    monkeypatch.setattr(listening.Channel, "_receive_next", lambda _: False)
    other = threading.Thread(target=channel.service)
    first = threading.Thread(target=channel.service)
    first.start()
    first.join(1)
    still_kept = channel.is_kept
    go_on.set()
    first.join(5)
    other.join(5)

    assert answered == ["first", "second"]
    assert still_kept, "the thread that listens must not read it meanwhile"
    assert not channel.is_kept


def test_a_connection_that_a_thread_comes_to_keep_while_we_look_is_not_read_by_another(monkeypatch):
    channel = channel_of(Threads())

    def answered_meanwhile(self):
        self.is_kept = True
        return True

    monkeypatch.setattr(listening.HTTPChannel, "readable", answered_meanwhile)

    assert not channel.readable()

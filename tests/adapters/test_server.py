"""The HTTP server as a client on a socket sees it."""

import contextlib
import socket
import threading
import time

import pytest
from flask import Flask, Response, request

from extender.adapters.server import Server
from extender.errors import DovetailError
from extender.settings import Server as Settings


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
def running(**settings):
    server = Server(app(), Settings(port=0, **settings))
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
        data += connection.recv(65536)
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
    with running() as server, connect(server) as connection:
        post(connection, "/echo", b"y" * 9_500_000)
        assert len(read_reply(connection)[1]) == 9_500_000


def test_a_connection_is_kept_for_many_requests():
    with running() as server, connect(server) as connection:
        for number in range(50):
            post(connection, "/echo", str(number).encode())
            head, body = read_reply(connection)
            assert body == str(number).encode()
            assert b"connection: close" not in head.lower()


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


def test_stop_answers_what_was_asked_and_takes_nothing_new():
    with running() as server, connect(server) as connection:
        post(connection, "/slow", b"")
        time.sleep(0.2)
        server.stop()
        assert read_reply(connection)[1] == b"late"
        time.sleep(0.3)
        with pytest.raises(ConnectionRefusedError):
            connect(server)


def test_stop_does_not_wait_longer_than_it_may():
    with running(drain_seconds=0.1) as server, connect(server) as connection:
        post(connection, "/slow", b"")
        time.sleep(0.2)
        server.stop()


def test_a_port_that_is_taken_is_named_with_what_to_set():
    with running() as server, pytest.raises(DovetailError, match=rf"127.0.0.1:{server.port}: .*set server.address"):
        Server(app(), Settings(port=server.port))

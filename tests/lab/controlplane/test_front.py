"""What stands before a server hands on what is asked and answered, and fails where it is told to."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import urllib3

from lab.controlplane.front import Front


class Echo(BaseHTTPRequestHandler):
    """Answers 202 with what it was asked."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        said = f"{self.path} {self.headers['Content-Type']} {body.decode()}".encode()
        self.send_response(202)
        self.send_header("Content-Length", str(len(said)))
        self.send_header("Content-Type", "text/echo")
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    running = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


@pytest.fixture
def front(server):
    standing = Front(f"http://127.0.0.1:{server.server_port}")
    yield standing
    standing.close()


def asked(front):
    headers = {"Content-Type": "text/question"}
    return urllib3.request("POST", f"{front.url}/path?a=b", body=b"why", headers=headers, retries=False)


def test_questions_and_answers_are_handed_on(front):
    answer = asked(front)
    assert (answer.status, answer.data) == (202, b"/path?a=b text/question why")
    assert answer.headers["Content-Type"] == "text/echo"


def test_while_it_fails_it_answers_500_by_itself_and_then_hands_on_again(front):
    front.failing = True
    assert asked(front).status == 500
    front.failing = False
    assert asked(front).status == 202


def test_a_server_that_is_gone_is_a_bad_gateway(front, server):
    server.shutdown()
    server.server_close()
    assert asked(front).status == 502

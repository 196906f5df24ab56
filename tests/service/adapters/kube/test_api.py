"""List and watch: whatever ends a watch, nothing is missed and nothing counted twice."""

import gc
import io
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
import urllib3
from kubernetes import client
from kubernetes.config.config_exception import ConfigException

from extender.adapters.kube import api as api_module
from extender.adapters.kube import watching
from extender.adapters.kube.api import Api, Refused, UnsupportedVersion, connect, default_namespace
from extender.adapters.kube.nodes import nodes
from extender.adapters.kube.watching import Watch, pods
from extender.adapters.metrics.scraping import said_at
from extender.cluster.events import NodeGone, NodeSeen, NodesListed, PodGone, PodSeen, PodsListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import CapacityRule, Node
from extender.errors import ClusterError


def pod(uid, version, node=None, cpu="1"):
    return {
        "metadata": {"name": uid, "namespace": "d", "uid": uid, "resourceVersion": str(version)},
        "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu}}}]},
    }


def line(kind, thing):
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"


def bookmark(version):
    return line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


GONE = line("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})


class Page:
    """A list reply, or one page of it."""

    def __init__(self, version, *items, more=""):
        self.data = json.dumps(
            {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items) or None}
        ).encode()

    def read(self, _most):
        return self.data


class Stream:
    """A watch reply: gives its chunks, then ends plainly or by raising what stands in their place."""

    def __init__(self, *chunks):
        self.chunks = chunks
        self.closed = False

    def stream(self, _size):
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    def shutdown(self):
        pass

    def close(self):
        self.closed = True


class FakeApi:
    """Offers what a Watch asks of an Api: plays a script, keeps what was asked, and stops the watch at its end."""

    def __init__(self, *script):
        self.script = list(script)
        self.asked = []
        self.streams = [reply for reply in script if isinstance(reply, Stream)]
        self.at_end = lambda: None

    def get(self, path, params=(), *, seconds=30.0):
        assert path == "/api/v1/pods"
        assert seconds > 0
        if not self.script:
            self.at_end()
            raise ClusterError("the script is over")
        self.asked.append(dict(params))
        reply = self.script.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


class Played:
    """What came of a script."""

    def __init__(self, *script):
        self.api = FakeApi(*script)
        self.events, self.causes = [], []
        self.ledger = Ledger(in_flight_seconds=15)
        self.ledger.apply(NodesListed([Node("a", {"cpu": 100_000.0})]))
        self.watch = Watch(
            self.api, pods(), self.take, restarted=lambda _, cause: self.causes.append(cause), clock=lambda: 5.0
        )
        self.api.at_end = self.watch.stop
        self.watch.run()

    def take(self, event):
        self.events.append(event)
        self.ledger.apply(event)

    @property
    def cores(self):
        return float(self.ledger.snapshot(0).allocated[0, 0]) / 1000

    @property
    def asked(self):
        """How each call went on: from which version a watch, from which token a page, else a new list."""
        return [
            f"watch {asked['resourceVersion']}" if "watch" in asked else f"list {asked.get('continue', '')}".strip()
            for asked in self.api.asked
        ]

    @property
    def seen(self):
        """Which pods were told of, in what way, in order."""
        told = []
        for event in self.events:
            match event:
                case PodsListed(listed):
                    told.append(("listed", [pod.uid for pod in listed]))
                case PodSeen(pod):
                    told.append(("seen", pod.uid))
                case PodGone(uid):
                    told.append(("gone", uid))
        return told


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    """Wait for nothing: how long pauses are has its own test."""
    monkeypatch.setattr(watching, "_pause", lambda _fruitless: 0.0)


# -- lists


def test_a_list_is_read_page_by_page_and_told_as_one():
    played = Played(Page(9, pod("p", 1, "a"), more="t1"), Page(9, pod("q", 2, "a"), more="t2"), Page(9, pod("r", 3)))
    assert played.asked == ["list", "list t1", "list t2"]
    assert played.seen == [("listed", ["p", "q", "r"])]
    assert played.cores == 2
    assert played.watch.synced.is_set()
    assert {asked["limit"] for asked in played.api.asked} == {"500"}


def test_an_empty_list_counts_as_synced():
    played = Played(Page(9))
    assert played.seen == [("listed", [])]
    assert played.watch.synced.is_set()
    assert played.watch.heard_at == 5


def test_a_list_that_grows_too_old_between_two_pages_starts_anew_and_tells_nothing_of_the_first():
    played = Played(Page(9, pod("p", 1), more="t1"), Refused("expired", 410), Page(12, pod("q", 11)))
    assert played.asked == ["list", "list t1", "list"]
    assert played.seen == [("listed", ["q"])]


def test_a_list_that_fails_is_tried_again_from_its_first_page():
    played = Played(ClusterError("unreachable"), Page(9, more="t1"), Refused("error", 500), Page(9, pod("p", 1)))
    assert played.asked == ["list", "list", "list t1", "list"]
    assert played.seen == [("listed", ["p"])]


# -- watches


def test_a_watch_goes_on_from_the_list_and_asks_for_bookmarks():
    played = Played(Page(9), Stream(line("ADDED", pod("p", 10, "a"))))
    assert played.asked == ["list", "watch 9"]
    assert played.api.asked[1]["allowWatchBookmarks"] == "true"
    assert int(played.api.asked[1]["timeoutSeconds"]) > 0
    assert played.seen == [("listed", []), ("seen", "p")]
    assert played.cores == 1


def test_changes_and_deletions_are_told():
    played = Played(
        Page(9, pod("p", 1, "a"), pod("q", 2, "a")),
        Stream(line("MODIFIED", pod("p", 10, "a", cpu="3")) + line("DELETED", pod("q", 11, "a"))),
    )
    assert played.seen[1:] == [("seen", "p"), ("gone", "q")]
    assert played.cores == 3


def test_after_a_plain_end_it_resumes_from_the_last_version():
    played = Played(
        Page(9),
        Stream(line("ADDED", pod("p", 10, "a")), line("ADDED", pod("q", 11, "a"))),
        Stream(line("ADDED", pod("r", 12, "a"))),
        Stream(),
    )
    assert played.asked == ["list", "watch 9", "watch 11", "watch 12"]
    assert played.seen == [("listed", []), ("seen", "p"), ("seen", "q"), ("seen", "r")]
    assert played.cores == 3
    assert set(played.causes) == {"ended"}


@pytest.mark.parametrize("end", [(), (urllib3.exceptions.ProtocolError("cut"),)], ids=["plain end", "broken"])
def test_an_event_that_was_cut_in_the_middle_of_its_line_is_neither_lost_nor_doubled(end):
    event = line("ADDED", pod("q", 11, "a"))
    for cut in (1, len(event) // 2, len(event) - 1):
        played = Played(Page(9), Stream(line("ADDED", pod("p", 10, "a")) + event[:cut], *end), Stream(event))
        assert played.asked == ["list", "watch 9", "watch 10"]
        assert played.seen == [("listed", []), ("seen", "p"), ("seen", "q")]
        assert played.cores == 2


def test_lines_may_come_in_any_pieces():
    text = line("ADDED", pod("p", 10, "a")) + b"\n" + line("ADDED", pod("q", 11, "a"))
    for size in (1, 7, 100, len(text)):
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        assert Played(Page(9), Stream(*pieces)).seen == [("listed", []), ("seen", "p"), ("seen", "q")]


def test_a_bookmark_moves_the_version_and_tells_nothing():
    played = Played(Page(9), Stream(bookmark(50)), Stream(bookmark(70)), Stream())
    assert played.asked == ["list", "watch 9", "watch 50", "watch 70"]
    assert played.seen == [("listed", [])]


@pytest.mark.parametrize(
    "failure",
    [
        ClusterError("unreachable"),
        Refused("unavailable", 503),
        Refused("forbidden", 403),
        urllib3.exceptions.ReadTimeoutError(None, "/", "silent"),
        ConnectionResetError("reset"),
    ],
)
def test_a_watch_that_cannot_be_opened_is_tried_again_from_the_same_version(failure):
    played = Played(Page(9), failure, failure, Stream(line("ADDED", pod("p", 10, "a"))))
    assert played.asked == ["list", "watch 9", "watch 9", "watch 9"]
    assert played.causes == ["failed", "failed", "ended"]
    assert played.cores == 1


@pytest.mark.parametrize("gone", [Stream(GONE), Refused("gone", 410)], ids=["as an event", "as a status"])
def test_a_version_that_is_too_old_makes_it_list_again(gone):
    played = Played(
        Page(9, pod("p", 1, "a"), pod("q", 2, "a")),
        gone,
        Page(30, pod("q", 2, "a"), pod("r", 29, "a")),  # p went meanwhile, r came
        Stream(line("ADDED", pod("s", 31, "a"))),
    )
    assert played.asked == ["list", "watch 9", "list", "watch 30"]
    assert played.seen == [("listed", ["p", "q"]), ("listed", ["q", "r"]), ("seen", "s")]
    assert played.cores == 3  # q, r, s
    assert played.causes == ["expired", "ended"]


@pytest.mark.parametrize(
    "rubbish",
    [
        b"<html>\n",
        b'{"type": "ADDED"}\n',
        b'{"type": "ADDED", "object": {"metadata": 5}}\n',
        b'{"type": "ADDED", "object": {"metadata": {"name": "\xff"}}}\n',
        b'{"type": "ADDED", "object": {"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}\n",
    ],
)
def test_a_line_that_cannot_be_read_makes_it_list_again(rubbish):
    played = Played(
        Page(9),
        Stream(line("ADDED", pod("p", 10, "a")) + rubbish + line("ADDED", pod("q", 12, "a"))),
        Page(20, pod("p", 10, "a"), pod("q", 12, "a")),
        Stream(),
    )
    assert played.asked == ["list", "watch 9", "list", "watch 20"]
    assert played.causes == ["garbled", "ended"]
    assert played.cores == 2


def test_a_line_that_does_not_end_makes_it_list_again(monkeypatch):
    monkeypatch.setattr(watching, "_LONGEST_LINE", 1000)
    played = Played(Page(9), Stream(*[b"x" * 100] * 100), Page(20, pod("p", 10, "a")), Stream())
    assert played.asked == ["list", "watch 9", "list", "watch 20"]
    assert played.causes == ["garbled", "ended"]


def test_a_list_that_cannot_be_read_is_asked_for_again():
    rubbish = Page(0)
    rubbish.data = b"<html>"
    assert Played(rubbish, Page(9, pod("p", 1))).seen == [("listed", ["p"])]


@pytest.mark.parametrize("field", ["nodeName", "containers"])
def test_an_object_of_a_list_that_cannot_be_read_is_left_out_and_named(field, capsys):
    broken = pod("bad", 1, "a")
    broken["spec"][field] = 5
    page = Page(9, pod("p", 1, "a"), broken, pod("q", 2, "a"))
    played = Played(page, page, Stream(line("ADDED", pod("r", 10, "a"))))
    assert played.asked == ["list", "list", "watch 9"]
    assert played.seen == [("listed", ["p", "q"]), ("seen", "r")]
    assert played.cores == 3
    told = capsys.readouterr().out
    assert "d/bad" in told
    assert f"$.spec.{field}" in told


@pytest.mark.parametrize("field", ["namespace", "name", "uid"])
def test_a_pod_of_a_list_that_does_not_say_which_it_is_is_left_out(field, capsys):
    """Its queue would have no name: no plan could be made."""
    broken = pod("bad", 1, "a")
    del broken["metadata"][field]
    page = Page(9, pod("p", 1, "a"), broken)
    assert Played(page, page, Stream()).seen == [("listed", ["p"])]
    assert "metadata states no namespace, no name or no uid" in capsys.readouterr().out


def test_a_change_that_cannot_be_read_takes_no_other_object_away():
    broken = pod("bad", 10, "a")
    broken["metadata"]["labels"] = 5
    page = Page(20, pod("p", 1, "a"), broken)
    played = Played(Page(9, pod("p", 1, "a")), Stream(line("ADDED", broken)), page, page, Stream())
    assert played.asked == ["list", "watch 9", "list", "list", "watch 20"]
    assert played.seen == [("listed", ["p"]), ("listed", ["p"])]


def test_a_mistake_of_ours_makes_it_list_again_instead_of_going_blind():
    api = FakeApi(Page(9), Stream(line("ADDED", pod("p", 10))), Page(12, pod("p", 10)))
    told, causes = [], []

    def take(event):
        told.append(event)
        if isinstance(event, PodSeen):
            raise KeyError("a mistake")

    watch = Watch(api, pods(), take, restarted=lambda _, cause: causes.append(cause))
    api.at_end = watch.stop
    watch.run()
    assert [type(event) for event in told] == [PodsListed, PodSeen, PodsListed]
    assert causes == ["garbled"]


def test_a_watch_says_at_each_turn_page_and_line_that_it_moves():
    moves, told = [], []
    api = FakeApi(Page(9, more="t"), Page(9), Stream(bookmark(10), bookmark(11)), ClusterError("unreachable"))
    watch = Watch(api, pods(), told.append, moved=lambda: moves.append(api.asked[-1:]), clock=lambda: 5.0)
    api.at_end = watch.stop
    watch.run()
    # Three turns, two pages, a list, an open stream, two lines.
    assert len(moves) == 3 + 2 + 1 + 1 + 2


@pytest.mark.parametrize("first", [Page(9), ClusterError("unreachable"), Refused("conversion webhook failed", 500)])
def test_after_its_first_list_or_failure_a_watch_has_tried(first):
    api = FakeApi(first)
    watch = Watch(api, pods(), lambda _: None)
    tried = []
    api.at_end = lambda: (tried.append(watch.tried.is_set()), watch.stop())
    watch.run()
    assert tried == [True]


def test_an_optional_kind_that_is_gone_was_heard_of_and_one_that_fails_was_not():
    def heard(failure):
        api = FakeApi(failure)
        watch = Watch(api, replace(pods(), optional=True), lambda _: None, clock=lambda: 5.0)
        api.at_end = watch.stop
        watch.run()
        return watch.heard_at

    assert heard(Refused("no such kind", 404)) == 5.0
    assert heard(Refused("conversion webhook failed", 500)) is None


def test_every_stream_is_closed_and_the_watch_is_down_afterwards():
    played = Played(Page(9), Stream(bookmark(10)), Stream(b"rubbish\n"), Page(9), Stream(GONE))
    assert [stream.closed for stream in played.api.streams] == [True, True, True]
    assert not played.watch.connected


def test_the_watch_counts_as_connected_from_its_opening_and_tells_its_age():
    now, states = [100.0], []
    api = FakeApi(Page(9), Stream(line("ADDED", pod("p", 10))))
    watch = Watch(api, pods(), lambda _: states.append((watch.connected, watch.age_seconds())), clock=lambda: now[0])
    api.at_end = watch.stop
    assert watch.age_seconds() == float("inf")
    watch.run()
    assert states == [(False, float("inf")), (True, 0)]
    now[0] = 107.0
    assert watch.age_seconds() == 7


def test_a_long_rough_day_leaves_the_right_totals():
    """Every way to end, in a row, over 40 pods of which every fourth goes again."""
    ends = [(), (b'{"type": "ADD',), (urllib3.exceptions.ProtocolError("cut"),), (bookmark(0),), (GONE,), (b"}\n",)]
    alive, version, script = {}, 100, [Page(100)]
    for number in range(40):
        version += 1
        alive[f"p{number}"] = pod(f"p{number}", version, "a")
        events = [line("ADDED", alive[f"p{number}"])]
        if number % 4 == 3:
            version += 1
            gone = alive.pop(f"p{number - 1}")
            gone["metadata"]["resourceVersion"] = str(version)
            events.append(line("DELETED", gone))
        end = ends[number % len(ends)]
        if end == (bookmark(0),):
            version += 5
            end = (bookmark(version),)
        script.append(Stream(b"".join(events), *end))
        if end in ((GONE,), (b"}\n",)):
            script.append(Page(version, *alive.values()))
    played = Played(*script)
    assert played.cores == len(alive) == 30
    assert played.ledger.counts() == (30, 0, 0)


# -- pauses


@pytest.fixture
def pauses(monkeypatch):
    """How many fruitless rounds lay behind each pause."""
    rounds = []
    monkeypatch.setattr(watching, "_pause", lambda fruitless: rounds.append(fruitless) or 0.0)
    return rounds


def test_pauses_grow_with_every_round_that_brings_nothing_and_start_again_after_one_that_did(pauses):
    news = Stream(line("ADDED", pod("p", 10, "a")))
    Played(Page(9), ClusterError("down"), ClusterError("down"), news, ClusterError("down"), Stream(bookmark(11)))
    # first list and failing watch; failing watch; news; failing watch; bookmark
    assert pauses == [1, 2, 0, 1, 0]


@pytest.mark.parametrize("end", [Refused("gone", 410), Stream(GONE)], ids=["status", "event"])
def test_lists_that_expire_at_once_are_not_repeated_without_a_pause(pauses, end):
    Played(Page(9), end, Page(9), end, Page(9), end)
    assert pauses == [1, 2, 3]


def test_watches_that_end_at_once_are_not_reopened_without_a_pause(pauses):
    Played(Page(9), Stream(), Stream(), Stream())
    assert pauses == [1, 2, 3]


def test_a_pause_doubles_up_to_ten_seconds_however_many_rounds(monkeypatch):
    monkeypatch.undo()
    for fruitless, longest in ((0, 0), (1, 0.2), (2, 0.4), (3, 0.8), (6, 6.4), (7, 10), (2_000, 10)):
        drawn = [watching._pause(fruitless) for _ in range(50)]
        assert all(longest / 2 <= pause <= longest for pause in drawn)


# -- nodes


def test_nodes_are_told_with_the_capacity_that_settings_give_them():
    resource = nodes([CapacityRule({"disk": "ssd"}, {"disk-read": 5.0})])
    raw = json.dumps(
        {"metadata": {"name": "n", "labels": {"disk": "ssd"}}, "status": {"allocatable": {"cpu": "1"}}}
    ).encode()
    expected = Node("n", {"cpu": 1000, "disk-read": 5}, labels={"disk": "ssd"})
    assert resource.path == "/api/v1/nodes"
    assert resource.listed([raw]) == NodesListed([expected])
    assert resource.seen(raw) == NodeSeen(expected)
    assert resource.gone(raw) == NodeGone("n")


# -- a real connection


@contextmanager
def served(answer):
    """Serve HTTP on loopback; `answer` gets the handler."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            answer(self)

        def do_POST(self):
            answer(self)

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    configuration = client.Configuration()
    configuration.host = f"http://127.0.0.1:{server.server_port}"
    configuration.retries = False
    try:
        with client.ApiClient(configuration) as api:
            yield Api(api)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reply(status, text):
    def answer(handler):
        length = int(handler.headers.get("Content-Length") or 0)
        handler.received = handler.rfile.read(length)
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    return answer


def version(major, minor):
    return json.dumps({"major": major, "minor": minor, "gitVersion": f"v{major}.{minor}.1"}).encode()


@pytest.mark.parametrize("minor", ["33", "36", "40+"])
def test_a_version_that_is_new_enough_is_told(minor):
    with served(reply(200, version("1", minor))) as api:
        assert api.check_version() == f"v1.{minor}.1"


def test_a_version_that_is_too_old_is_refused_with_the_one_that_is_needed():
    with (
        served(reply(200, version("1", "32"))) as api,
        pytest.raises(UnsupportedVersion, match=r"v1\.32\.1 is too old; Dovetail needs 1\.33 or later"),
    ):
        api.check_version()


@pytest.mark.parametrize("text", [b"<html>", b"\xff", b"[]"])
def test_an_answer_that_is_no_version_is_a_cluster_error(text):
    with served(reply(200, text)) as api, pytest.raises(ClusterError, match="GET /version"):
        api.check_version()


def test_a_refusal_carries_its_status_and_its_text():
    with served(reply(403, b'{"message": "pods is forbidden"}')) as api:
        with pytest.raises(Refused, match=r"GET /api/v1/pods: 403 .*pods is forbidden") as caught:
            api.get("/api/v1/pods")
        assert caught.value.status == 403
        with pytest.raises(Refused):
            api.post("/api/v1/namespaces/d/events", {})


def test_an_object_is_posted_as_json():
    received = []

    def answer(handler):
        reply(201, b"{}")(handler)
        received.append((handler.path, handler.received, handler.headers["Content-Type"]))

    with served(answer) as api:
        api.post("/api/v1/namespaces/d/events", {"kind": "Event"})
    assert [(path, json.loads(text), kind) for path, text, kind in received] == [
        ("/api/v1/namespaces/d/events?fieldManager=dovetail", {"kind": "Event"}, "application/json")
    ]


def cut_off(handler, status=200):
    handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    handler.send_response(status)
    handler.send_header("Content-Length", "500")
    handler.end_headers()
    handler.wfile.write(b'{"kind": "Le')
    handler.close_connection = True


def test_an_answer_that_breaks_off_is_a_cluster_error_for_reads_and_writes():
    with served(cut_off) as api:
        with pytest.raises(ClusterError, match="broke off"):
            api.read("/x")
        with pytest.raises(ClusterError, match="broke off"):
            api.post("/x", {})
    with served(reply(200, b'{"kind": "Le')) as api, pytest.raises(ClusterError, match="cannot be read"):
        api.read("/x")


@pytest.mark.parametrize("body", [b"[]", b"null", b"5", b"<html>"])
def test_an_answer_that_is_no_object_is_a_cluster_error(body):
    with served(reply(200, body)) as api, pytest.raises(ClusterError, match="GET /x: the answer cannot be read"):
        api.read("/x")


DEEP = b'{"metadata": {}, "items": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}"
ITEMS = b"{}", b"[{}]", b"[null]", b'[{"metadata": {}}]', b'[{"metadata": {"name": "\xff"}}]'
GARBAGE = b"{}", b"null", b"", b'{"metadata": {}}', *(b'{"metadata": {}, "items": %b}' % one for one in ITEMS), DEEP


@pytest.mark.parametrize("body", GARBAGE, ids=range(len(GARBAGE)))
def test_an_answer_that_no_api_server_gives_is_a_cluster_error(body):
    with served(reply(200, body)) as api, pytest.raises(ClusterError, match="GET /api/v1/x: the answer cannot be read"):
        api.read("/api/v1/x")


def test_a_list_whose_items_are_null_has_none():
    with served(reply(200, b'{"metadata": {}, "items": null}')) as api:
        assert api.read("/api/v1/x")["items"] == []


def test_an_answer_that_does_not_end_is_a_cluster_error(monkeypatch):
    def endless(handler):
        handler.send_response(200)
        handler.end_headers()
        with suppress(OSError):
            while True:
                handler.wfile.write(b"x" * 1000)

    monkeypatch.setattr(api_module, "MOST_BYTES", 100_000)
    with served(endless) as api:
        with pytest.raises(ClusterError, match="GET /x: the answer is larger than 100,000 bytes"):
            api.read("/x")
        with pytest.raises(ClusterError, match="the answer is larger than 100,000 bytes"):
            said_at(api._api.configuration.host, "metrics")


def test_so_is_the_text_of_a_refusal_that_breaks_off():
    with served(partial(cut_off, status=503)) as api, pytest.raises(ClusterError, match=r"503.*broke off"):
        api.read("/x")


def test_a_page_of_a_proxy_and_a_failure_of_tls_are_told_in_one_line():
    with served(reply(503, b"<html>\n<body>\n  no backend\n</body>")) as api:
        with pytest.raises(Refused) as refused:
            api.get("/version")
        assert str(refused.value).endswith("<html> <body> no backend </body>")
        plain = api._api.configuration.host
        secure = client.Configuration()
        secure.host, secure.retries = plain.replace("http:", "https:"), False
        with client.ApiClient(secure) as other, pytest.raises(ClusterError, match="SSL") as failed:
            Api(other).get("/version")
        assert len(str(failed.value).splitlines()) == 1


def test_a_server_that_is_not_there_is_named_without_words_of_the_client():
    with served(reply(200, b"{}")) as api:
        pass
    with pytest.raises(ClusterError) as failed:
        api.get("/version")
    why = "Failed to establish a new connection: Connection refused; is a server there?"
    assert str(failed.value) == f"GET {api._api.configuration.host}/version: {why}"


def test_a_server_that_hangs_is_a_cluster_error():
    with served(lambda _: time.sleep(0.5)) as api, pytest.raises(ClusterError):
        api.get("/version", seconds=0.1)


def test_a_request_that_fails_leaves_nothing_that_only_a_look_for_cycles_frees():
    configuration = client.Configuration()
    configuration.host, configuration.retries = "http://127.0.0.1:1", False
    left = []
    with client.ApiClient(configuration) as nowhere:
        api = Api(nowhere)
        for _ in range(5):  # the first one makes what stays, and threads of other tests may end during another
            gc.collect()
            gc.disable()
            try:
                with suppress(ClusterError):
                    api.get("/version")
                left.append(gc.collect())
            finally:
                gc.enable()
    assert min(left) == 0


def test_a_token_that_is_being_rotated_is_a_cluster_error():
    configuration = client.Configuration()
    configuration.host, configuration.retries = "http://127.0.0.1:1", False
    configuration.api_key = {"authorization": "bearer half\nwritten"}
    with client.ApiClient(configuration) as broken, pytest.raises(ClusterError, match="the token is not text on one"):
        Api(broken).get("/version")

    def refresh(_configuration):
        raise ConfigException("Token file exists but empty.")

    configuration.refresh_api_key_hook = refresh
    with client.ApiClient(configuration) as broken, pytest.raises(ClusterError, match="Token file exists but empty"):
        Api(broken).get("/version")


def test_a_token_that_cannot_be_sent_is_not_shown():
    configuration = client.Configuration()
    configuration.host, configuration.retries = "http://127.0.0.1:1", False
    for token in ("secret\nof two lines", "secret\0", "secret\N{SNOWMAN}"):
        configuration.api_key = {"BearerToken": f"Bearer {token}"}
        with client.ApiClient(configuration) as broken, pytest.raises(ClusterError) as failed:
            Api(broken).post("/x", {})
        assert "secret" not in str(failed.value)


@contextmanager
def by_token_file(tmp_path):
    """Yield an Api by a kubeconfig whose user has its token in the file `token`, and what its calls are sent with."""
    received = []

    def answer(handler):
        received.append(handler.headers["Authorization"])
        reply(200, b"{}")(handler)

    with served(answer) as server:
        path = kubeconfig(tmp_path, "config", current="a", a=server._api.configuration.host)
        path.write_text(path.read_text().replace('"token": "config"', '"tokenFile": "token"'))
        api = connect(path)
        yield api, received
        api._api.close()


def test_a_file_with_a_token_may_end_in_a_line_end_as_kubectl_has_it(tmp_path):
    (tmp_path / "token").write_text("of-a-file\n")
    with by_token_file(tmp_path) as (api, received):
        api.read("/x")
    assert received == ["Bearer of-a-file"]


def test_a_file_with_a_token_is_read_again_when_it_has_changed_and_has_one(tmp_path):
    token = tmp_path / "token"
    token.write_text("first")
    with by_token_file(tmp_path) as (api, received):
        apart = api.apart(5.0)
        for text in ("first", "second one", "", None, "third"):
            token.unlink(missing_ok=True)
            if text is not None:
                token.write_text(text)
            api.read("/x")
            apart.read("/x")
        apart._api.close()
    sent = ["first", "second one", "second one", "second one", "third"]
    assert received == [f"Bearer {text}" for text in sent for _ in range(2)]


def test_calls_that_must_not_wait_go_by_connections_of_their_own_and_say_who_we_are():
    ports, agents = [], []
    release = threading.Event()

    def answer(handler):
        ports.append(handler.client_address[1])
        agents.append(handler.headers["User-Agent"])
        if len(ports) == 2:
            release.wait(20)  # a server that died behind its balancer
        reply(200, b"{}")(handler)

    with served(answer) as api:
        api._api.user_agent = "dovetail"
        api.read("/x")
        apart = api.apart(0.1)
        with pytest.raises(ClusterError, match=r"read timeout=0\.1"):
            apart.read("/x")
        release.set()
        apart.read("/x")
        api.read("/x")
    assert len(set(ports[:3])) == 3, "neither of the first two connections is used again"
    assert agents == ["dovetail"] * 4


@pytest.mark.parametrize(
    "text", [None, "", "a: [", "- a", "words", "clusters: 5", "apiVersion: v1\nkind: Config\n", "[" * 5_000]
)
def test_a_kubeconfig_that_is_of_no_use_is_named(tmp_path, text):
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ClusterError, match=r"config is not a kubeconfig: .*; give another by --kubeconfig"):
        connect(path)


def test_a_namespace_that_is_a_number_in_the_kubeconfig_is_its_name(tmp_path):
    path = tmp_path / "config"
    path.write_text("current-context: c\ncontexts: [{name: c, context: {namespace: 5}}]\nclusters: []\nusers: []\n")
    assert default_namespace(path) == "5"


def kubeconfig(folder, name, *, current=None, **servers):
    """Write a file with a context, a cluster and a user of each name; the user's token is the file's name."""
    told = {
        "clusters": [{"name": it, "cluster": {"server": server}} for it, server in servers.items()],
        "users": [{"name": it, "user": {"token": name}} for it in servers],
        "contexts": [{"name": it, "context": {"cluster": it, "user": it}} for it in servers],
        **({} if current is None else {"current-context": current}),
    }
    path = folder / name
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **told}))
    return path


def reached(*paths):
    configuration = connect(Path(":".join(map(str, paths))))._api.configuration
    return configuration.host, configuration.get_api_key_with_prefix("BearerToken")


def test_as_many_calls_at_once_as_settings_allow_writers_keep_their_connections(tmp_path):
    """As many at once, in two rounds: the second finds the connections of the first, so no port is new."""
    rounds = [set(), set()]
    meeting = threading.Barrier(64, timeout=20)

    def answer(handler):
        meeting.wait()
        rounds[0 if len(rounds[0]) < 64 else 1].add(handler.client_address[1])
        reply(200, b"{}")(handler)

    with served(answer) as server, ThreadPoolExecutor(64) as writers:
        api = connect(kubeconfig(tmp_path, "config", current="a", a=server._api.configuration.host))
        for _ in rounds:
            list(writers.map(lambda _: api.read("/x"), range(64)))
        api._api.close()
    assert rounds[0] == rounds[1]


class TestSeveralKubeconfigs:
    """As kubectl merges them: skip what is not there, and the first to name something wins."""

    def test_the_current_context_is_that_of_the_first_file_that_names_one(self, tmp_path):
        a = kubeconfig(tmp_path, "a", current="x", x="http://a")
        b = kubeconfig(tmp_path, "b", current="y", y="http://b")
        silent = kubeconfig(tmp_path, "silent", current="", z="http://c")
        assert reached(a, b) == ("http://a", "Bearer a")
        assert reached(b, a) == ("http://b", "Bearer b")
        assert reached(silent, b, a) == ("http://b", "Bearer b")

    def test_what_two_files_call_the_same_is_that_of_the_first(self, tmp_path):
        a = kubeconfig(tmp_path, "a", x="http://a")
        b = kubeconfig(tmp_path, "b", current="x", x="http://b")
        assert reached(a, b) == ("http://a", "Bearer a")

    def test_files_that_are_not_there_or_empty_are_skipped(self, tmp_path):
        a = kubeconfig(tmp_path, "a", current="x", x="http://a")
        empty = tmp_path / "empty"
        empty.touch()
        assert reached(tmp_path / "missing", empty, a, Path("/dev/null")) == ("http://a", "Bearer a")

    def test_where_none_is_there_all_are_named(self, tmp_path):
        for ask in (connect, default_namespace):
            with pytest.raises(
                ClusterError, match=f"{tmp_path}/a:{tmp_path}/b is not a kubeconfig: there is no such file"
            ):
                ask(Path(f"{tmp_path}/a:{tmp_path}/b"))

    def test_a_pipe_is_refused_and_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        for ask in (connect, default_namespace):
            with pytest.raises(ClusterError, match=f"{tmp_path}/pipe is a pipe, which can be read once only"):
                ask(tmp_path / "pipe")


class TestContexts:
    """As kubectl takes them: --context goes before the current one, and each has a namespace of its own."""

    def files(self, folder):
        a = kubeconfig(folder, "a", current="x", x="http://a", y="http://b")
        document = json.loads(a.read_text())
        document["contexts"][1]["context"]["namespace"] = "team"
        a.write_text(json.dumps(document))
        return a, kubeconfig(folder, "b", z="http://c")

    def test_a_context_that_is_named_goes_before_the_current_one(self, tmp_path):
        a, b = self.files(tmp_path)
        both = Path(f"{a}:{b}")
        hosts = [connect(both, context)._api.configuration.host for context in ("", "y", "z")]
        assert hosts == ["http://a", "http://b", "http://c"]

    def test_one_that_is_not_there_is_an_error_that_names_those_that_are(self, tmp_path):
        a, b = self.files(tmp_path)
        with pytest.raises(ClusterError, match="has no context nope; accepted: x, y, z"):
            connect(Path(f"{a}:{b}"), "nope")

    def test_in_a_pod_there_is_none(self, monkeypatch):
        monkeypatch.setattr("kubernetes.config.load_incluster_config", lambda **_: None)
        with pytest.raises(ClusterError, match="there is no kubeconfig with a context x"):
            connect(None, "x")

    def test_the_namespace_is_that_of_the_context_else_default(self, tmp_path):
        a, _ = self.files(tmp_path)
        assert [default_namespace(a, context) for context in ("", "x", "y", "nope")] == [
            "default", "default", "team", "default",
        ]  # fmt: skip

    def test_in_a_pod_it_is_the_pods(self, tmp_path, monkeypatch):
        monkeypatch.setattr("extender.adapters.kube.api._POD_NAMESPACE", tmp_path / "namespace")
        assert default_namespace(None) == "default"
        (tmp_path / "namespace").write_text("mine\n")
        assert default_namespace(None) == "mine"


def test_stop_ends_a_watch_that_waits_for_bytes_at_once():
    release = threading.Event()

    def answer(handler):
        if "watch=true" not in handler.path:
            reply(200, Page(9).data)(handler)
            return
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        text = bookmark(10)
        handler.wfile.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
        handler.wfile.flush()
        release.wait(20)
        handler.close_connection = True

    with served(answer) as api:
        watch = Watch(api, pods(), lambda _: None)
        thread = threading.Thread(target=watch.run)
        thread.start()
        assert watch.synced.wait(10)
        deadline = time.monotonic() + 10
        while not watch.connected and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        started = time.monotonic()
        watch.stop()
        thread.join(10)
        took = time.monotonic() - started
        release.set()
    assert not thread.is_alive()
    assert took < 2


def test_the_time_that_a_stream_was_open_stands_still_while_it_is_not():
    now = [0.0]
    seen = []

    class Api:
        def __init__(self):
            self.calls = 0

        def get(self, path, params=(), *, seconds=30.0):
            if ("watch", "true") not in params:
                return io.BytesIO(b'{"metadata":{"resourceVersion":"1"},"items":[]}')
            self.calls += 1
            if self.calls == 2:
                seen.append(watch.connected_seconds(now[0]))
                now[0] += 20  # down for 20 s before the second stream opens
            if self.calls == 3:
                watch.stop()
            return SimpleNamespace(stream=self._stream, close=lambda: None, shutdown=lambda: None)

        def _stream(self, size):
            now[0] += 7  # open for 7 s
            yield b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2"}}}\n'

    watch = Watch(Api(), pods(), lambda _: None, clock=lambda: now[0])
    watch.run()
    assert seen == [7]
    assert watch.connected_seconds(now[0]) == 14

"""The thread that looks every interval, what it keeps, and what is told of it."""

import threading
from dataclasses import dataclass, field, replace

from structlog.testing import capture_logs

from extender.adapters.usage.looks import UsageLook
from extender.adapters.usage.reading import NOT_YET, UsageReader
from extender.adapters.usage.report import read, report_of, written
from extender.adapters.usage.trust import NO_SERIES
from extender.cluster.model import Node, Pod
from extender.cluster.usage import Sample, Usage
from extender.errors import UsageError

NODES = [Node(name, {"cpu": 1000.0}) for name in "ab"]
USAGE = Usage(
    nodes={"a": Sample({"cpu": 1.0}, 30.0, 90.0), "b": Sample({"cpu": 1.0}, 40.0, 95.0)},
    pods_on={"a": Sample({"cpu": 1.0}, 30.0, 90.0)},
    pods={"uid": Sample({"cpu": 1.0}, 30.0, 90.0)},
)


@dataclass
class Scripted:
    """A source that gives one of `looks` after the other, the last for ever."""

    looks: list
    asked: list = field(default_factory=list)
    looked: threading.Event = field(default_factory=threading.Event)

    def look(self, nodes, pods):
        self.asked.append(pods)
        if len(self.asked) > 2:
            self.looked.set()
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(look, Exception):
            raise look
        return look


@dataclass
class Heard:
    kinds: list = field(default_factory=list)
    failures: list = field(default_factory=list)

    def note_look(self, kind):
        self.kinds.append(kind)

    def note_failure(self, problem):
        self.failures.append(problem)


def reader_of(*looks, now=100.0, pods=()):
    heard = Heard()
    time = [now]
    reader = UsageReader(
        Scripted(list(looks)), lambda: NODES, lambda: list(pods), heard, 0.001, 30.0, clock=lambda: time[0]
    )
    return reader, heard, time


GOOD = UsageLook(USAGE, {"uid": "a"}, strangers=1, named=("x",))


def test_before_the_first_look_nothing_is_known_of_any_node():
    reader, _, _ = reader_of(GOOD)
    assert reader.usage() == Usage(problems={"a": NOT_YET, "b": NOT_YET})


def test_a_look_is_kept_until_its_samples_are_too_old_node_by_node():
    reader, _, time = reader_of(GOOD)
    reader.look()
    assert reader.usage() is USAGE
    time[0] = 122.0  # the samples of a are 32 s old, those of b 27 s
    usage = reader.usage()
    assert (set(usage.nodes), set(usage.pods_on), set(usage.pods)) == ({"b"}, set(), set())
    assert usage.problems == {"a": "newest sample is older than 30 s"}


def test_a_look_that_fails_leaves_all_nodes_out_at_once():
    reader, _, _ = reader_of(GOOD, UsageError("slow", "no answer in time"))
    reader.look()
    reader.look()
    assert reader.usage() == Usage(problems=dict.fromkeys("ab", "no answer in time"))


def test_failing_is_counted_each_time_and_told_once_until_a_look_is_good_again():
    error = UsageError("slow", "no answer in time")
    reader, heard, _ = reader_of(error, error, GOOD, error)
    with capture_logs() as logs:
        for _ in range(4):
            reader.look()
    assert heard.kinds == ["slow", "slow", "ok", "slow"]
    assert heard.failures == ["no answer in time", "no answer in time"]
    assert [(line["log_level"], line["event"]) for line in logs] == [
        ("warning", "use of nodes cannot be read"),
        ("info", "use of nodes is read again"),
        ("warning", "use of nodes cannot be read"),
    ]


def test_failing_ends_with_the_first_look_that_measures_a_node():
    nobody = UsageLook(Usage(problems=dict.fromkeys("ab", "newest sample is older than 30 s")))
    reader, heard, _ = reader_of(nobody, UsageError("slow", "no answer in time"), nobody, GOOD, nobody)
    with capture_logs() as logs:
        for _ in range(5):
            reader.look()
    assert heard.kinds == ["ok", "slow", "ok", "ok", "ok"]
    assert [(line["event"], line.get("nodes")) for line in logs] == [
        ("use of nodes cannot be read", None),
        ("use of nodes is read again", 2),
    ]


def test_whatever_goes_wrong_the_thread_goes_on():
    reader, heard, _ = reader_of(ZeroDivisionError("oh"), GOOD)
    stopped = threading.Event()
    with capture_logs():
        thread = threading.Thread(target=reader.run, args=(stopped,))
        thread.start()
        assert reader.source.looked.wait(30)
        stopped.set()
        thread.join(30)
    assert heard.kinds[:2] == ["error", "ok"]
    assert not thread.is_alive()


def test_only_pods_that_are_or_were_on_a_node_are_asked_about():
    pods = [
        Pod("1", "x", "one", {}, node="a"),
        Pod("2", "x", "two", {}),
        Pod("3", "x", "3", {}, node="a", finished=True),
    ]
    reader, _, _ = reader_of(GOOD, pods=pods)
    reader.look()
    assert reader.source.asked == [[pods[0], pods[2]]]


def test_the_report_says_ages_and_who_has_no_partner():
    problems = {"c": NO_SERIES, "d": "cpu is negative", "e": "cpu is negative"}
    reader, _, _ = reader_of(UsageLook(Usage(USAGE.nodes, problems=problems), strangers=1, named=("x",)))
    reader.look()
    report = read("here", written(report_of(reader, "http://there")).decode())
    assert (report.source, report.failure, report.measured) == ("http://there", None, 2)
    assert (report.newest_seconds, report.oldest_seconds) == (5.0, 10.0)
    assert (report.without_series, report.without_series_named) == (1, ("c",))
    assert (report.strangers, report.strangers_named) == (1, ("x",))
    assert report.problems == {"cpu is negative": 2}


def test_the_report_counts_measured_nodes_by_the_rates_that_they_declare_and_nobody_measures():
    known = {"cpu": 1.0, "network-in": 0.0}
    sample = Sample(known, 30.0, 90.0)
    reader, _, _ = reader_of(UsageLook(Usage({"a": sample, "b": sample, "c": Sample({"cpu": 1.0}, 30.0, 90.0)})))
    rates = {"disk-read": 5.0, "network-in": 5.0}
    reader.nodes = lambda: [Node(name, {"cpu": 1000.0, **rates}) for name in "abcd"] + [Node("e", {"cpu": 1000.0})]
    reader.look()
    report = read("here", written(report_of(reader, "x")).decode())
    # a and b: disk-read alone. c: both. d is not measured at all, and e declares no rate.
    assert report.without_rates == {"disk-read": 2, "disk-read, network-in": 1}


def test_the_report_says_why_nothing_is_known():
    reader, _, _ = reader_of(UsageError("refused", "401"))
    reader.look()
    assert report_of(reader, "http://there").failure == "401"


def test_how_long_pods_wait_is_forgotten_with_the_samples_of_their_node():
    usage = Usage(USAGE.nodes, USAGE.pods_on, USAGE.pods, pressure={"a": 0.5, "b": 0.25})
    reader, _, time = reader_of(UsageLook(usage, {"uid": "a"}))
    reader.look()
    time[0] = 122.0
    assert reader.usage().pressure == {"b": 0.25}


def test_the_report_counts_the_measured_nodes_of_which_no_waiting_is_known_where_it_is_asked_for():
    reader, _, _ = reader_of(UsageLook(Usage(USAGE.nodes, pressure={"a": 0.5})))
    reader.look()
    assert read("here", written(report_of(reader, "x", pressure=True)).decode()).without_pressure == 1
    assert report_of(reader, "x").without_pressure == 0


def test_a_pod_whose_sample_grows_too_old_is_left_out_alone():
    newest = {"regular": 80.0, "crashed": 80.0, "on a": 95.0, "on b": 95.0}
    usage = replace(
        USAGE,
        pods={uid: Sample({}, 20.0, at) for uid, at in newest.items()},
        gone={"a": {"cpu": 1.0}, "b": {"cpu": 2.0}},
    )
    reader, _, time = reader_of(UsageLook(usage, {"crashed": "b", "on a": "a", "on b": "b"}))
    reader.look()
    time[0] = 115.0
    assert (set(reader.usage().nodes), set(reader.usage().pods)) == ({"a", "b"}, {"on a", "on b"})
    time[0] = 122.0  # the sample of a is too old: so go its opportunistic pods, and what has ended there
    left = reader.usage()
    assert (set(left.nodes), set(left.pods), left.gone) == ({"b"}, {"on b"}, {"b": {"cpu": 2.0}})


def test_what_is_left_of_a_look_is_made_once_until_more_grows_too_old():
    reader, _, time = reader_of(GOOD)
    reader.look()
    time[0] = 122.0
    left = reader.usage()
    time[0] = 124.0
    assert reader.usage() is left
    time[0] = 126.0
    assert reader.usage().nodes == {}

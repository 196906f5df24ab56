"""A look by a Prometheus that is well, and by one that is not in every way that there is."""

import time
from dataclasses import replace

import pytest

from extender.adapters.usage.trust import NO_SERIES
from extender.errors import UsageError
from tests.service.adapters.usage.fake import GIB, NODES, PODS, FakePrometheus, source


@pytest.fixture
def fake():
    with FakePrometheus() as server:
        yield server


def failure(fake, **more):
    with pytest.raises(UsageError) as raised:
        source(fake.url, **more).look(NODES, PODS)
    return raised.value.kind, str(raised.value)


def test_a_healthy_one_gives_nodes_pods_and_the_sum_of_pods_in_our_units(fake):
    usage = source(fake.url).look(NODES, PODS).usage
    assert usage.problems == {}
    assert usage.nodes["a"].amounts == {"cpu": 2000.0, "memory": 4 * GIB, "network-in": 5e7}
    assert usage.pods_on["b"].amounts == {"cpu": 750.0, "memory": GIB}
    assert usage.pods["uid-1"].amounts == {"cpu": 1000.0, "memory": GIB}


def test_a_sample_is_of_its_newest_raw_sample_and_its_window_reaches_back_from_the_evaluation(fake):
    before = time.time()
    usage = source(fake.url).look(NODES, PODS).usage
    assert usage.nodes["a"].at == fake.values["node", "time"]["a"]
    assert before - 60 <= usage.nodes["a"].since <= time.time() - 60
    assert usage.pods["uid-2"].at == fake.values["pod", "time"]["lab", "two", "b"]


def test_it_is_asked_once_for_each_dimension_once_for_pods_and_once_for_times(fake):
    source(fake.url).look(NODES, PODS)
    queries = [form["query"] for _, _, form in fake.requests]
    assert len(queries) == 8
    assert sum('"time"' in query for query in queries) == 1
    fake.requests.clear()
    source(fake.url).look(NODES, [])
    assert len(fake.requests) == 7
    fake.requests.clear()
    source(fake.url).look(NODES, [replace(PODS[0], finished=True), PODS[1]])
    assert len(fake.requests) == 9


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"status": 503}, "server_error", "503"),
        ({"status": 500}, "server_error", "500"),
        ({"status": 401}, "refused", "401"),
        ({"status": 422}, "refused", "422"),
        ({"status": 302, "reply_headers": {"Location": "http://127.0.0.1:1/"}}, "refused", "302"),
        ({"extra": {"warnings": ["a store is away"]}}, "warnings", "a store is away"),
        ({"extra": {"isPartial": True}}, "partial", "isPartial"),
        ({"extra": {"status": "error", "errorType": "timeout", "error": "too long"}}, "refused", "timeout: too long"),
        ({"body": b"<html>login</html>"}, "malformed", "not one of Prometheus"),
        ({"body": b""}, "malformed", "not one of Prometheus"),
        ({"body": b'{"status":"success"}'}, "refused", "success"),
        ({"body": b'{"status":"success","data":{"resultType":"matrix","result":[]}}'}, "malformed", "matrix"),
        (
            {"body": b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"x"]}]}}'},
            "malformed",
            "could not convert",
        ),
        (
            {"body": b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[]}]}}'},
            "malformed",
            "value",
        ),
        ({"values": {}}, "empty", "not one series"),
        ({"skew": -30.0}, "skew", "clock"),
        ({"skew": 30.0}, "skew", "clock"),
        ({"reply_headers": {"Content-Length": "1000000"}, "wait": 0.0}, "slow", "no answer in time"),
    ],
)  # fmt: skip
def test_whatever_makes_the_whole_answer_doubtful_makes_the_whole_look_fail(fake, changes, kind, text):
    for name, value in changes.items():
        setattr(fake, name, value)
    found, said = failure(fake, seconds=1.0 if kind == "slow" else 5.0)
    assert found == kind
    assert text in said


def test_one_that_does_not_answer_in_time_is_slow(fake):
    fake.wait = 1.0
    assert failure(fake, seconds=0.2)[0] == "slow"


def test_one_that_drips_its_answer_is_slow_though_every_byte_comes_in_time(fake):
    fake.drip = 0.02
    assert failure(fake, seconds=0.5)[0] == "slow"


def test_one_that_is_not_there_is_unreachable(fake):
    fake.server_close()
    assert failure(fake)[0] == "unreachable"


def test_one_whose_name_does_not_resolve_is_unreachable():
    with pytest.raises(UsageError) as raised:
        source("http://nowhere.invalid:9090").look(NODES, [])
    assert raised.value.kind == "unreachable"


def test_infos_are_about_the_query_and_do_not_make_it_doubtful(fake):
    fake.extra = {"infos": ["metric might not be a counter"]}
    assert set(source(fake.url).look(NODES, PODS).usage.nodes) == {"a", "b"}


@pytest.mark.parametrize(
    ("who", "name", "value", "problem"),
    [
        ("node", "cpu", "NaN", "cpu is not a number"),
        ("node", "memory", "+Inf", "memory is not a number"),
        ("node", "cpu", -0.5, "cpu is negative"),
        ("node", "cpu", 16.1, "cpu is absurd: far more than there is"),  # the node offers 4 cores, so 16 at most
        ("node", "memory", 33 * GIB, "memory is absurd: far more than there is"),
        ("node", "network-in", 1.1e9, "network-in is absurd: far more than there is"),
        ("node", "disk-read", 1e14, "disk-read is absurd: far more than there is"),
        ("node", "cpu", [1.0, 1.0], "cpu was measured twice: set usage.matchers, or correct the template"),
        ("node", "cpu", 0.0, "cpu or memory in use is exactly 0: what measures it stands still"),
        ("node", "time", 0.0, "newest sample is older than 90 s"),
        ("node", "time", "NaN", "newest sample is from the future: clocks differ"),
        ("node", "time", 1e11, "newest sample is from the future: clocks differ"),
        ("pods-on", "cpu", "NaN", "pods' cpu is not a number"),
        ("pods-on", "memory", -1.0, "pods' memory is negative"),
        ("pods-on", "time", 0.0, "pods' newest sample is older than 90 s"),
        ("pods-on", "cpu", [0.1, 0.1], "pods' cpu was measured twice: set usage.matchers, or correct the template"),
        ("pods-on", "cpu", 3.1, "pods use far more cpu than the whole node: they are counted twice"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_believed_leaves_its_node_out_and_no_other(fake, who, name, value, problem):
    fake.set(who, name, "a", value)
    usage = source(fake.url).look(NODES, PODS).usage
    assert usage.problems == {"a": problem}
    assert (set(usage.nodes), set(usage.pods_on), set(usage.pods)) == ({"b"}, {"b"}, {"uid-2"})


@pytest.mark.parametrize("value", ["NaN", -1.0, 100.0, [0.1, 0.1]])
def test_a_pods_value_that_cannot_be_believed_leaves_its_node_out(fake, value):
    fake.set("pod", "cpu", ("lab", "one", "a"), value)
    usage = source(fake.url).look(NODES, PODS).usage
    assert usage.problems["a"].startswith("a pod's cpu ")
    assert (set(usage.nodes), set(usage.pods)) == ({"b"}, {"uid-2"})


@pytest.mark.parametrize(("gone", "problem"), [("cpu", "cpu has no series"), ("memory", "memory has no series")])
def test_a_node_without_cpu_or_memory_is_not_measured(fake, gone, problem):
    del fake.values["node", gone]["a"]
    assert source(fake.url).look(NODES, PODS).usage.problems == {"a": problem}


def test_a_node_without_any_series_is_not_measured(fake):
    for (who, _), values in fake.values.items():
        if who == "node":
            values.pop("a", None)
    assert source(fake.url).look(NODES, PODS).usage.problems == {"a": NO_SERIES}


def test_a_node_of_which_the_time_is_not_known_is_not_measured(fake):
    del fake.values["node", "time"]["a"]
    assert source(fake.url).look(NODES, PODS).usage.problems == {
        "a": "time is not known: there are no raw samples, or not for a whole window yet"
    }


def test_disk_and_network_that_nobody_measures_are_absent_and_not_zero(fake):
    del fake.values["node", "network-in"]["a"]
    usage = source(fake.url).look(NODES, PODS).usage
    assert "network-in" not in usage.nodes["a"].amounts
    assert usage.nodes["b"].amounts["network-in"] == 0.0


def test_a_pod_that_starts_has_no_raw_sample_yet_and_is_left_out_by_itself(fake):
    del fake.values["pod", "time"]["lab", "one", "a"]
    fake.set("pod", "network-in", ("lab", "one", "a"), 5.0)
    usage = source(fake.url).look(NODES, PODS).usage
    assert (set(usage.nodes), set(usage.pods), usage.problems) == ({"a", "b"}, {"uid-2"}, {})


def test_a_pod_of_the_same_name_on_another_node_is_another_pod(fake):
    fake.values["pod", "cpu"] = {("lab", "one", "b"): 3.0, ("other", "one", "a"): 3.0}
    fake.values["pod", "time"] = {}
    assert "uid-1" not in source(fake.url).look(NODES, PODS).usage.pods


def test_series_of_no_node_here_are_counted_as_strangers(fake):
    for number in range(7):
        fake.set("node", "cpu", f"elsewhere-{number}", 1.0)
        fake.set("node", "memory", f"elsewhere-{number}", 1.0)
    look = source(fake.url).look(NODES, PODS)
    assert look.strangers == 7
    assert look.named == tuple(f"elsewhere-{number}" for number in range(5))
    assert set(look.usage.nodes) == {"a", "b"}


def test_nodes_are_found_by_their_address_with_a_port_too(fake):
    fake.node_label = "instance"
    for key, value in fake.values.items():
        if key[0] != "pod":
            fake.values[key] = {{"a": "10.0.0.1:9100", "b": "10.0.0.2"}[name]: one for name, one in value.items()}
    assert set(source(fake.url).look(NODES, PODS).usage.nodes) == {"a", "b"}


def test_how_long_regular_pods_wait_for_cpu_is_asked_only_where_evictions_go_by_it(fake):
    assert source(fake.url).look(NODES, PODS).usage.pressure == {}
    assert len(fake.requests) == 8
    fake.requests.clear()
    assert source(fake.url, pressure=True).look(NODES, PODS).usage.pressure == {"a": 0.25, "b": 0.0}
    assert len(fake.requests) == 9


@pytest.mark.parametrize("value", ["NaN", "+Inf", -0.1, 1.2, [0.25, 0.25]])
def test_a_waiting_that_cannot_be_believed_is_not_known_and_all_else_about_the_node_is(fake, value):
    fake.set("cpu-pressure", "cpu-pressure", "a", value)
    usage = source(fake.url, pressure=True).look(NODES, PODS).usage
    assert usage.pressure == {"b": 0.0}
    assert (set(usage.nodes), usage.problems) == ({"a", "b"}, {})


def test_without_samples_of_its_pods_or_with_a_problem_nothing_is_known_of_a_nodes_waiting(fake):
    del fake.values["pods-on", "time"]["a"]
    fake.set("node", "cpu", "b", -1.0)
    assert source(fake.url, pressure=True).look(NODES, []).usage.pressure == {}


def test_who_is_or_was_opportunistic_within_the_window_does_not_count_as_regular(fake):
    now = [0.0]
    reader = source(fake.url, pressure=True, seconds=1e6)
    reader.timer = lambda: now[0]

    def left_out(pods):
        fake.requests.clear()
        reader.look(NODES, pods)
        (query,) = [form["query"] for _, _, form in fake.requests if "cpu-pressure" in form["query"]]
        return [name for name in ("one", "two") if f'pod=~"{name}' in query or f'|{name}"' in query]

    reader.queries = replace(reader.queries, pods={**reader.queries.pods, "cpu-pressure": "P_cpu-pressure{$pods}"})
    regular = [replace(pod, opportunistic=False) for pod in PODS]
    assert left_out(regular) == []  # one of those whose use is sampled beside the opportunistic ones
    assert left_out(PODS) == ["one", "two"]
    now[0] = 15.0  # `one` was promoted since: what it waited before still stands in the window
    assert left_out(PODS[1:]) == ["one", "two"]
    now[0] = 74.0
    assert left_out(PODS[1:]) == ["one", "two"]
    now[0] = 75.0
    assert left_out(PODS[1:]) == ["two"]


@pytest.mark.parametrize("value", ["NaN", -1.0, 100.0, [0.1, 0.1]])
def test_a_regular_pods_value_that_cannot_be_believed_leaves_only_the_pod_out(fake, value):
    fake.set("pod", "cpu", ("lab", "one", "a"), value)
    usage = source(fake.url).look(NODES, [replace(PODS[0], opportunistic=False), PODS[1]]).usage
    assert (set(usage.nodes), set(usage.pods), usage.problems) == ({"a", "b"}, {"uid-2"}, {})


def test_what_the_sum_over_pods_still_holds_of_a_pod_that_has_ended_is_told_by_node(fake):
    fake.set("pod", "network-in", ("lab", "one", "a"), 5.0)
    usage = source(fake.url).look(NODES, [replace(PODS[0], finished=True), PODS[1]]).usage
    assert usage.gone == {"a": {"cpu": 1000.0, "memory": GIB, "network-in": 5.0}}
    assert set(usage.pods) == {"uid-2"}
    assert usage.rate_seconds == 60.0


@pytest.mark.parametrize(("finished", "change"), [(False, 0.1), (True, -0.1)], ids=["began", "ended"])
def test_no_more_is_told_of_a_pod_than_its_node_was_told_to_use_though_scrapes_come_between_the_questions(
    fake, finished, change
):
    # Of the node's 2 cores the pod uses 1: what the window holds of it grows, or shrinks once it has ended.
    answer = fake.answer

    def answer_then_scrape(query):
        reply = answer(query)
        for who, key in (("node", "a"), ("pod", ("lab", "one", "a"))):
            fake.set(who, "cpu", key, fake.values[who, "cpu"][key] + change)
        return reply

    fake.answer = answer_then_scrape
    usage = source(fake.url).look(NODES, [replace(PODS[0], finished=finished), PODS[1]]).usage
    told = usage.gone["a"] if finished else usage.pods["uid-1"].amounts
    assert 0 < told["cpu"] <= usage.nodes["a"].amounts["cpu"] - 1000.0


@pytest.mark.parametrize("value", ["NaN", -1.0, 100.0, [0.1, 0.1]])
def test_what_cannot_be_believed_of_a_pod_that_has_ended_is_not_told(fake, value):
    fake.set("pod", "cpu", ("lab", "one", "a"), value)
    usage = source(fake.url).look(NODES, [replace(PODS[0], finished=True)]).usage
    assert (usage.gone, usage.problems) == ({"a": {"memory": GIB}}, {})


def test_of_a_node_that_cannot_be_believed_nothing_is_told_of_who_has_ended(fake):
    fake.set("node", "cpu", "a", "NaN")
    assert source(fake.url).look(NODES, [replace(PODS[0], finished=True)]).usage.gone == {}

"""What was used over the last hours, read a range at a time, and what a failure leaves missing."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from structlog.testing import capture_logs

from extender.adapters.usage.access import Access
from extender.adapters.usage.history import STEPS, HistoryReader
from extender.adapters.usage.history_decoding import series
from extender.adapters.usage.queries import Queries
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from extender.errors import UsageError
from extender.settings.sections import UsageAccess
from tests.service.adapters.usage.fake import NAMES, NODES, FakeHistory

NOW = 300_000.0 + 40.0
LAST = 300_000.0


@pytest.fixture
def fake():
    with FakeHistory() as server:
        yield server


def reader_of(fake, now=NOW):
    time = [now]
    queries = Queries(
        60, ("node",), nodes={name: f"N_{name}" for name in NAMES}, pods={name: f"P_{name}" for name in NAMES}
    )
    reader = HistoryReader(Access(fake.url, UsageAccess()), queries, lambda: NODES, clock=lambda: time[0])
    return reader, time


def of(reader, who, column=CPU_INDEX):
    history = reader.history
    return history.use[history.rows[who], :, column]


def test_two_hours_and_a_half_are_read_at_once_of_nodes_and_of_every_pod_in_our_units(fake):
    reader, _ = reader_of(fake)
    reader.read()
    assert reader.failure is None
    assert_allclose(reader.history.times, LAST - 300.0 * np.arange(STEPS - 1, -1, -1))
    assert set(reader.history.rows) == {
        ("a", "", ""),
        ("b", "", ""),
        ("a", "lab", "one"),
        ("b", "lab", "two"),
    }
    assert_allclose(of(reader, ("a", "", "")), np.full(STEPS, 2000.0))
    assert_allclose(of(reader, ("a", "lab", "one")), np.full(STEPS, 1000.0))
    assert_allclose(of(reader, ("b", "lab", "two"), MEMORY_INDEX), np.full(STEPS, 2.0**30))


def test_no_question_is_for_more_than_half_an_hour(fake):
    reader, _ = reader_of(fake)
    reader.read()
    spans = {float(form["end"]) - float(form["start"]) for _, _, form in fake.requests}
    assert max(spans) == 5 * 300.0


def test_while_no_node_is_known_nothing_is_asked_and_all_is_read_once_one_is(fake):
    reader, _ = reader_of(fake)
    reader.nodes = list
    reader.read()
    assert (len(fake.requests), reader.failure) == (0, "no history was read yet")
    reader.nodes = lambda: NODES
    reader.read()
    assert (len(reader.history.times), reader.failure) == (STEPS, None)


def test_later_only_what_is_new_is_asked_for_and_what_is_old_is_forgotten(fake):
    reader, time = reader_of(fake)
    reader.read()
    fake.requests.clear()
    reader.read()
    assert fake.requests == []
    fake.values["pod", "cpu"] = {("lab", "new", "a"): 3.0}
    time[0] += 300.0
    reader.read()
    assert {(form["start"], form["end"]) for _, _, form in fake.requests} == {(str(LAST + 300.0), str(LAST + 300.0))}
    assert_allclose(of(reader, ("a", "lab", "new")), [*[np.nan] * (STEPS - 1), 3000.0])
    assert_allclose(of(reader, ("a", "lab", "one")), [*[1000.0] * (STEPS - 1), np.nan])
    # After two hours and a half nothing is left of who has no series any more.
    fake.values["pod", "memory"] = {}
    time[0] += STEPS * 300.0
    reader.read()
    assert ("a", "lab", "one") not in reader.history.rows
    assert_allclose(of(reader, ("a", "lab", "new")), np.full(STEPS, 3000.0))


def test_a_failure_leaves_a_hole_only_for_as_long_as_it_lasts(fake):
    reader, time = reader_of(fake)
    reader.read()
    fake.status = 503
    time[0] += 900.0
    with capture_logs() as logs:
        reader.read()
        reader.read()
    assert "503" in reader.failure
    assert len(logs) == 1
    assert reader.history.times[-1] == LAST
    fake.status = 200
    reader.read()
    assert reader.failure is None
    assert reader.history.times[-1] == LAST + 900.0
    assert_allclose(of(reader, ("a", "", "")), np.full(STEPS, 2000.0))


def test_after_a_longer_failure_than_is_kept_nothing_older_is_asked_for(fake):
    reader, time = reader_of(fake)
    reader.read()
    fake.requests.clear()
    time[0] += 1e6
    reader.read()
    starts = [float(form["start"]) for _, _, form in fake.requests]
    assert min(starts) == reader.history.times[0]
    assert not np.isnan(of(reader, ("a", "", ""))).any()


def test_what_prometheus_does_not_have_is_missing_and_not_0(fake):
    fake.from_time = LAST - 600.0
    reader, _ = reader_of(fake)
    reader.read()
    assert_allclose(of(reader, ("a", "", "")), [*[np.nan] * (STEPS - 3), 2000.0, 2000.0, 2000.0])


@pytest.mark.parametrize("value", ["NaN", "+Inf", -1.0, 1e9, [1.0, 1.0]])
def test_a_sample_that_cannot_be_believed_or_is_there_twice_is_missing(fake, value):
    fake.set("pod", "cpu", ("lab", "one", "a"), value)
    reader, _ = reader_of(fake)
    reader.read()
    assert np.isnan(of(reader, ("a", "lab", "one"))).all()
    assert_allclose(of(reader, ("a", "lab", "one"), MEMORY_INDEX), np.full(STEPS, 2.0**30))


def test_series_of_machines_outside_the_cluster_are_left_out(fake):
    fake.set("node", "cpu", "stranger", 1.0)
    reader, _ = reader_of(fake)
    reader.read()
    assert len(reader.history.rows) == 4


def test_whatever_goes_wrong_is_a_failure_and_the_next_read_goes_on(fake):
    reader, _ = reader_of(fake)
    reader.nodes = lambda: 1 / 0
    with capture_logs():
        reader.read()
    assert "ZeroDivisionError" in reader.failure
    reader.nodes = lambda: NODES
    reader.read()
    assert reader.failure is None


def _body(**more):
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}, **more}).encode()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<html>", "malformed"),
        (_body(status="error", data=None, error="too many samples", errorType="bad_data"), "refused"),
        (_body(warnings=["a store is away"]), "warnings"),
        (_body(isPartial=True), "partial"),
        (_body(data={"resultType": "vector", "result": []}), "malformed"),
        (_body(data={"resultType": "matrix", "result": [{"metric": {}, "values": [[1, "much"]]}]}), "malformed"),
    ],
)
def test_an_answer_with_a_reservation_is_no_answer(body, kind):
    with pytest.raises(UsageError) as refused:
        series(body)
    assert refused.value.kind == kind


def test_more_series_than_are_read_are_refused(monkeypatch):
    monkeypatch.setattr("extender.adapters.usage.history_decoding.MOST_SERIES", 1)
    one = {"metric": {}, "values": []}
    with pytest.raises(UsageError, match="the answer has 2 series; at most 1 are read"):
        series(_body(data={"resultType": "matrix", "result": [one, one]}))


def test_after_a_clock_that_was_ahead_is_put_right_all_is_read_anew(fake):
    reader, time = reader_of(fake, NOW + 86_400.0)
    reader.read()
    time[0] = NOW
    reader.read()
    assert reader.history.times[-1] == LAST
    assert_allclose(of(reader, ("a", "", "")), np.full(STEPS, 2000.0))
    time[0] = NOW + 300.0
    reader.read()
    assert reader.history.times[-1] == LAST + 300.0

"""Peaks as `control` predicts them, where settings say `auto`: from Prometheus to the report."""

import math
import threading
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from extender.adapters.usage.report import read
from extender.app.liveness import Liveness
from extender.app.measuring import Measuring
from extender.app.on_idle_room import Reporting, on_idle_room
from extender.cluster.events import NodesListed, PodsListed
from extender.cluster.model import Pod
from extender.control.eviction_requests import EvictionRequests
from extender.settings import parse
from tests.service.adapters.usage.fake import NAMES, NODES, FakeHistory
from tests.service.control.scene import Scene

HEAD = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration"}
NOW = 300_000.0 + 40.0
PODS = [
    Pod("uid-1", "lab", "one", {"cpu": 3000.0}, node="a", started=0.0),
    Pod("uid-2", "lab", "two", {"cpu": 2000.0}, node="b", started=0.0),
]


@pytest.fixture
def fake():
    with FakeHistory() as server:
        yield server


class Wired:
    def __init__(self, url, threshold="auto"):
        usage = {
            "url": url,
            "nodeQueries": {name: f"N_{name}" for name in NAMES},
            "podQueries": {name: f"P_{name}" for name in NAMES},
        }
        wanted = {"enabled": True, "threshold": threshold}
        settings = parse({**HEAD, "usage": usage, "opportunistic": wanted})
        self.scene, self.now, self.registry = Scene(*NODES), NOW, CollectorRegistry()
        self.passed = 0.0
        self.measures = CollectorRegistry()
        self.measuring = Measuring(settings, None, self.measures)
        requests = EvictionRequests(self.scene.cluster, None)
        reporting = Reporting(self.registry, lambda *_event: None)
        self.parts = on_idle_room(
            settings,
            SimpleNamespace(apart=lambda _seconds: None),
            self.scene.cluster,
            self.measuring,
            requests,
            reporting,
        )
        for event in (NodesListed(NODES), PodsListed(PODS)):
            self.measuring.take(event)
        self.predicting = self.measuring.predicting
        if self.predicting is not None:
            self.predicting._clock = self.predicting.reader.clock = lambda: self.now
            self.predicting._timer = lambda: self.passed

    def shown(self, name, **labels):
        return self.measures.get_sample_value(name, labels)

    def peak_of(self, node):
        peaks = self.predicting.peaks()
        return peaks.peak[peaks.layout.rows[node], peaks.layout.columns["cpu"]]

    @property
    def report(self):
        return read("here", self.measuring.report().decode()).auto


def test_peaks_are_of_what_prometheus_has_and_doctor_is_told(fake):
    wired = Wired(fake.url)
    assert wired.predicting.peaks() is None
    assert wired.report.failure == "no history was read yet"
    wired.predicting.turn()
    # Pod one uses 1 core and node a 2: what no pod accounts for is there, too.
    assert (wired.peak_of("a"), wired.peak_of("b")) == pytest.approx((2000, 1000))
    assert (wired.report.failure, wired.report.known, wired.report.nodes) == (None, 2, 2)
    assert wired.report.sigmas == 5.0


def test_metrics_show_n_and_the_room_in_all_and_nothing_of_single_nodes(fake):
    wired = Wired(fake.url)
    assert math.isnan(wired.shown("dovetail_peak_sigmas"))
    assert wired.shown("dovetail_peak_room", resource="cpu") == 0
    wired.predicting.turn()
    assert wired.shown("dovetail_peak_sigmas") == 5.0
    assert wired.shown("dovetail_peak_nodes", history="long") == 2
    assert wired.shown("dovetail_peak_nodes", history="short") == 0
    # Pods are evicted at 0.99, and the peaks are 2 and 1 cores.
    cores = sum(node.allocatable["cpu"] for node in NODES) / 1000
    assert wired.shown("dovetail_peak_room", resource="cpu") == pytest.approx(0.99 * cores - 3)


def test_no_peak_may_pass_what_pods_are_evicted_at(fake):
    thresholds = Wired(fake.url).parts.second_pass._terms.thresholds
    assert (thresholds.usual, thresholds.evict_at["cpu"], thresholds.evict_at["memory"]) == (None, 0.99, 0.95)
    assert Wired(fake.url, 0.7).parts.second_pass._terms.thresholds.usual == 0.7


def test_where_the_history_cannot_be_read_pods_count_in_full(fake):
    fake.status = 503
    wired = Wired(fake.url)
    with capture_logs():
        wired.predicting.turn()
    assert (wired.peak_of("a"), wired.peak_of("b")) == pytest.approx((3000, 2000))
    assert "503" in wired.report.failure
    assert wired.report.known == 0


def test_peaks_that_were_not_made_for_five_minutes_are_none(fake):
    wired = Wired(fake.url)
    wired.predicting.turn()
    wired.passed += 300.0
    assert wired.predicting.peaks() is not None
    wired.passed += 1.0
    assert wired.predicting.peaks() is None
    assert wired.report.sigmas is None


@pytest.mark.parametrize("step", [-400.0, 400.0])
def test_a_clock_that_is_set_changes_nothing_about_the_age_of_peaks(fake, step):
    wired = Wired(fake.url)
    wired.predicting.turn()
    wired.now += step
    assert wired.predicting.peaks() is not None
    wired.passed += 301.0
    assert wired.predicting.peaks() is None


def test_a_prediction_that_fails_leaves_the_last_one_to_grow_old(fake):
    wired = Wired(fake.url)
    wired.predicting.turn()
    wired.predicting._pods = lambda: 1 / 0
    with capture_logs() as logs:
        wired.predicting.turn()
    assert [line["event"] for line in logs] == ["peaks could not be predicted"]
    assert wired.predicting.peaks() is not None


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_eviction_is_counted_and_leads_n(fake, dry_run):
    wired = Wired(fake.url)
    wired.predicting.turn()
    wired.now += 1800.0
    wired.parts.preemptor._listener.note_preemption(PODS[0], "cpu", dry_run=dry_run)
    wired.now += 1800.0
    wired.predicting.turn()
    assert wired.report.sigmas == 6.0
    labels = {"resource": "cpu", "dry": str(dry_run).lower()}
    assert wired.registry.get_sample_value("dovetail_preemptions_total", labels) == 1


def test_it_runs_beside_the_reading_of_use_and_not_where_a_number_is_set(fake):
    stopped, liveness = threading.Event(), Liveness()
    wired, made = Wired(fake.url), threading.Event()
    wired.predicting.turn = made.set
    wired.measuring.reader = SimpleNamespace(run=lambda _stopped: None)
    wired.measuring.start(liveness, stopped, None, lambda: False)
    assert made.wait(30)
    stopped.set()
    assert Wired(fake.url, 0.8).predicting is None
    assert Wired(fake.url, 0.8).report is None

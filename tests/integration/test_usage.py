"""Usage read from a real Prometheus: of an exporter of ours that plays kubelets, and of a real node-exporter."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from numpy.testing import assert_allclose

from extender.adapters.usage.access import Access
from extender.adapters.usage.history import HistoryReader
from extender.adapters.usage.prometheus import Prometheus
from extender.adapters.usage.queries import Queries
from extender.adapters.usage.trust import NO_SERIES
from extender.cluster.model import Node, Pod
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from extender.errors import UsageError
from extender.settings.sections import UsageAccess, UsageSettings
from lab.controlplane import monitoring, pins, ports
from lab.controlplane.monitoring import program, starting
from tests.integration.exporter import GIB, Exporter

pytestmark = pytest.mark.own_control_plane

SECONDS = 0.5
WINDOW = 4
DEFAULTS = UsageSettings()
NODES = [
    Node("a", {"cpu": 8000.0, "memory": 16 * GIB}, addresses=("10.0.0.1",)),
    Node("b", {"cpu": 8000.0, "memory": 16 * GIB}, addresses=("10.0.0.2",)),
]
PODS = [Pod(f"uid-{name}", "lab", name, {}, node=node) for name, node in (("one", "a"), ("two.x", "a"), ("three", "b"))]


@pytest.fixture(scope="module")
def start():
    """Return what starts a program by its launch; all are stopped at the end."""
    with starting() as start:
        yield start


@pytest.fixture(scope="module")
def exporter():
    server = Exporter()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def prometheus(start, exporter, tmp_path_factory):
    """Run a real Prometheus that scrapes the exporter; return it and its address."""
    (port,) = ports.pick(1)
    job = monitoring.scraped("nodes", [exporter.address], SECONDS, honor_labels=True)
    folder = tmp_path_factory.mktemp("prometheus")
    component = start(monitoring.prometheus(program(pins.prometheus()), folder, port, [job]))
    return component, f"http://127.0.0.1:{port}"


def source(url, *, stale=30.0, seconds=10.0, labels=DEFAULTS.node_labels, pressure=False, **changed):
    queries = Queries(WINDOW, labels, **changed)
    return Prometheus(Access(url, UsageAccess()), queries, stale, pressure, look_seconds=seconds)


def until(look: Callable, holds: Callable, seconds=60.0):
    """Look until it holds, and return that look."""
    limit = time.monotonic() + seconds
    while True:
        try:
            found = look()
            if holds(found):
                return found
        except UsageError as error:
            if error.kind != "empty":
                raise
            found = error
        assert time.monotonic() < limit, found
        time.sleep(SECONDS)


def all_measured(look):
    return len(look.usage.nodes) == 2 and len(look.usage.pods) == 3 and not look.usage.problems


@pytest.fixture
def measured(prometheus):
    reader = source(prometheus[1])
    # A rate settles once the whole window is full.
    return until(
        lambda: reader.look(NODES, PODS),
        lambda it: all_measured(it) and it.usage.nodes["a"].amounts["cpu"] > 2_900,
    )


def test_each_dimension_of_whole_nodes_is_what_the_devices_did_each_counted_once(measured):
    assert measured.usage.nodes["a"].amounts == {
        "cpu": pytest.approx(3000, rel=0.1),
        "memory": 4 * GIB,
        "disk-read": pytest.approx(5e6, rel=0.1),
        "disk-write": pytest.approx(1e6, rel=0.1),
        "network-in": pytest.approx(2e6, rel=0.1),
        "network-out": pytest.approx(3e6, rel=0.1),
    }
    assert measured.usage.nodes["b"].amounts["cpu"] == pytest.approx(1000, rel=0.1)
    assert measured.strangers == 0


def test_pods_are_measured_one_by_one_and_in_the_sum_of_their_node_without_the_hosts_network(measured):
    pods, on_a = measured.usage.pods, measured.usage.pods_on["a"].amounts
    assert set(pods) == {"uid-one", "uid-two.x", "uid-three"}
    assert pods["uid-one"].amounts == {
        "cpu": pytest.approx(1000, rel=0.1),
        "memory": 2 * GIB,
        "disk-read": pytest.approx(1e6, rel=0.1),
        "network-in": pytest.approx(1e5, rel=0.1),
    }
    assert pods["uid-two.x"].amounts["cpu"] == pytest.approx(500, rel=0.1)
    assert on_a["memory"] == pytest.approx(3.1 * GIB)  # 2 + 1 + 0.1; not the 5 of the pod that ended
    assert on_a["cpu"] == pytest.approx(1600, rel=0.1)
    assert on_a["network-in"] == pytest.approx(3e5, rel=0.1)


@pytest.mark.usefixtures("measured")
def test_of_each_node_the_longest_waiting_of_a_regular_pod_counts_without_what_its_own_limit_held_it(prometheus):
    one, two, three = PODS

    def pressure_beside(*pods):
        opportunistic = [replace(pod, opportunistic=True) for pod in pods]
        return source(prometheus[1], pressure=True).look(NODES, opportunistic).usage.pressure

    alone = {"a": pytest.approx(0.6, rel=0.1), "b": pytest.approx(0.1, abs=0.02)}
    assert pressure_beside() == alone
    regular = [replace(pod, opportunistic=False) for pod in PODS]
    assert source(prometheus[1], pressure=True).look(NODES, regular).usage.pressure == alone
    # `two.x` is another pod than `two-x`; of b nobody regular is left, so nothing is known.
    assert pressure_beside(two) == {"a": pytest.approx(0.3, rel=0.1), "b": pytest.approx(0.1, abs=0.02)}
    assert pressure_beside(one, two, three) == {"a": pytest.approx(0.05, rel=0.1)}


def test_without_a_look_at_times_the_memory_of_a_pod_that_ended_would_count_for_five_minutes(prometheus, measured):
    plain = 'sum by (namespace, pod, $node) (container_memory_working_set_bytes{container!="",$pods,$matchers})'
    usage = source(prometheus[1], pods={"memory": plain}).look(NODES, PODS).usage
    assert usage.pods_on["a"].amounts["memory"] == pytest.approx(8.1 * GIB)
    assert measured.usage.pods_on["a"].amounts["memory"] == pytest.approx(3.1 * GIB)


@pytest.mark.usefixtures("measured")
def test_what_the_window_still_holds_of_a_pod_that_has_ended_is_told_until_the_window_is_over(prometheus, exporter):
    reader = source(prometheus[1])
    pods = [replace(PODS[0], finished=True), *PODS[1:]]
    exporter.ended.add("one")
    try:
        # It used 1,000 of the 1,600 of all pods there: half a window after its end about half of that is left.
        look = until(
            lambda: reader.look(NODES, pods), lambda it: it.usage.gone.get("a", {}).get("cpu", 1000) < 750, seconds=20
        )
        gone, on_a = look.usage.gone["a"], look.usage.pods_on["a"].amounts
        assert set(gone) == {"cpu", "disk-read", "network-in"}
        assert on_a["cpu"] - gone["cpu"] == pytest.approx(600, rel=0.2)
        assert "uid-one" not in look.usage.pods
        look = until(lambda: reader.look(NODES, pods), lambda it: it.usage.gone == {}, seconds=20)
        assert look.usage.pods_on["a"].amounts["cpu"] == pytest.approx(600, rel=0.2)
    finally:
        exporter.ended.clear()
    until(lambda: reader.look(NODES, PODS), all_measured)


@pytest.mark.usefixtures("measured")
def test_a_sample_is_as_old_as_the_last_scrape_not_as_the_question(prometheus, exporter):
    reader = source(prometheus[1])
    exporter.gone.add("10.0.0.2:9100")
    try:
        # Prometheus marks series that vanish from a scrape; rates last until their window is over.
        look = until(lambda: reader.look(NODES, PODS), lambda it: "b" in it.usage.problems)
        assert set(look.usage.nodes) == {"a"}
        look = until(lambda: reader.look(NODES, PODS), lambda it: it.usage.problems == {"b": NO_SERIES})
        assert (set(look.usage.nodes), set(look.usage.pods)) == ({"a"}, {"uid-one", "uid-two.x"})
    finally:
        exporter.gone.clear()
    look = until(lambda: reader.look(NODES, PODS), all_measured)
    ages = [time.time() - sample.at for sample in look.usage.nodes.values()]
    assert max(ages) < 20 * SECONDS
    assert all(sample.since <= sample.at - WINDOW + 20 * SECONDS for sample in look.usage.nodes.values())


@pytest.mark.usefixtures("measured")
def test_the_history_is_what_was_scraped_and_what_was_not_is_missing(prometheus):
    step, url = 2.0, prometheus[1]
    queries = Queries(WINDOW, DEFAULTS.node_labels)
    reader = HistoryReader(Access(url, UsageAccess()), queries, lambda: NODES, step_seconds=step, late_seconds=1.0)

    def read():
        reader.read()
        return reader

    def last(who, column):
        history = reader.history
        return history.use[history.rows[who], -3:, column]

    # Three samples after the last rate has settled.
    settled = {("a", "", ""): 2_900, ("a", "lab", "one"): 950, ("a", "lab", "two.x"): 475}
    until(
        read,
        lambda it: it.failure is None and all((last(who, CPU_INDEX) > least).all() for who, least in settled.items()),
    )
    assert_allclose(last(("a", "", ""), CPU_INDEX), 3000, rtol=0.1)
    assert_allclose(last(("a", "", ""), MEMORY_INDEX), 4 * GIB)
    assert_allclose(last(("a", "lab", "one"), CPU_INDEX), 1000, rtol=0.1)
    assert_allclose(last(("a", "lab", "one"), MEMORY_INDEX), 2 * GIB)
    assert_allclose(last(("a", "lab", "two.x"), CPU_INDEX), 500, rtol=0.1)
    assert ("b", "lab", "three") in reader.history.rows
    # A new reader is told the same of the same times: what was read piece by piece is what was stored.
    anew = HistoryReader(Access(url, UsageAccess()), queries, lambda: NODES, step_seconds=step, late_seconds=1.0)
    anew.clock = lambda: reader.history.times[-1] + 1.0
    anew.read()
    for who in (("a", "", ""), ("a", "lab", "one"), ("b", "lab", "three")):
        assert_allclose(anew.history.use[anew.history.rows[who]], reader.history.use[reader.history.rows[who]])


def test_a_history_of_nothing_that_was_scraped_is_empty(prometheus):
    reader = HistoryReader(Access(prometheus[1], UsageAccess()), Queries(WINDOW, ("node",)), lambda: NODES)
    reader.clock = lambda: time.time() - 1e6
    reader.read()
    assert reader.failure is None
    assert reader.history.rows == {}


@pytest.mark.usefixtures("measured")
def test_matchers_and_another_label_are_obeyed(prometheus):
    reader = source(prometheus[1], matchers='node!="b",instance!="10.0.0.2:9100"')
    look = reader.look(NODES, PODS)
    assert set(look.usage.nodes) == {"a"}
    assert look.usage.problems == {"b": NO_SERIES}
    assert set(source(prometheus[1], labels=("instance",)).look(NODES, []).usage.nodes) == {"a", "b"}


def test_scrapes_that_stop_are_seen_by_the_age_of_the_last_sample(exporter, start, tmp_path):
    """An instant query goes on to say the last value for five minutes, with the time of the evaluation."""
    (port,) = ports.pick(1)
    url = f"http://127.0.0.1:{port}"
    job = monitoring.scraped("nodes", [exporter.address], SECONDS, honor_labels=True)
    component = start(monitoring.prometheus(program(pins.prometheus()), tmp_path, port, [job]))
    reader = source(url, stale=3.0)
    reader.queries = Queries(15, DEFAULTS.node_labels)
    until(lambda: reader.look(NODES, PODS), all_measured)
    # The same data, and nobody scrapes any more.
    component.stop()
    start(monitoring.prometheus(program(pins.prometheus()), tmp_path, port, []))
    look = until(lambda: reader.look(NODES, PODS), lambda it: len(it.usage.problems) == 2)
    assert set(look.usage.problems.values()) == {"newest sample is older than 3 s"}
    assert not look.usage.nodes
    assert not look.usage.pods


def test_a_stopped_process_is_slow_and_one_that_is_gone_unreachable(exporter, start, tmp_path):
    (port,) = ports.pick(1)
    job = monitoring.scraped("nodes", [exporter.address], SECONDS, honor_labels=True)
    component = start(monitoring.prometheus(program(pins.prometheus()), tmp_path, port, [job]))
    reader = source(f"http://127.0.0.1:{port}", seconds=0.5)
    os.kill(component.pid, signal.SIGSTOP)
    with pytest.raises(UsageError, match="no answer in time") as slow:
        reader.look(NODES, PODS)
    component.kill()
    with pytest.raises(UsageError, match="refused") as gone:
        reader.look(NODES, PODS)
    assert (slow.value.kind, gone.value.kind) == ("slow", "unreachable")


def test_a_template_that_is_no_promql_is_refused_with_prometheus_own_words(prometheus):
    reader = source(prometheus[1], nodes={"cpu": "rate("})
    with pytest.raises(UsageError, match="parse error") as refused:
        reader.look(NODES, PODS)
    assert refused.value.kind == "refused"


def test_the_default_templates_read_a_real_node_exporter(start, tmp_path):
    exporter_port, port = ports.pick(2)
    start(monitoring.node_exporter(program(pins.node_exporter()), tmp_path / "exporter", exporter_port))
    job = monitoring.scraped("node-exporter", [f"127.0.0.1:{exporter_port}"], SECONDS)
    start(monitoring.prometheus(program(pins.prometheus()), tmp_path / "prometheus", port, [job]))
    cpus = os.cpu_count() or 1
    memory = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    nodes = [Node("here", {"cpu": 1000.0 * cpus, "memory": memory}, addresses=("127.0.0.1",))]
    reader = source(f"http://127.0.0.1:{port}")

    look = until(lambda: reader.look(nodes, []), lambda it: bool(it.usage.nodes))

    amounts = look.usage.nodes["here"].amounts
    assert 0 < amounts["cpu"] <= 1000 * cpus * 1.1
    assert 0 < amounts["memory"] < memory
    print(amounts)

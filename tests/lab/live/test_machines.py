"""The exporter says what nodes and pods use, as node-exporters and kubelets do."""

import json
from types import SimpleNamespace

import pytest
import urllib3

from extender.cluster.resources import CPU, DISK_READ, MEMORY
from lab.controlplane import builders
from lab.live.machines import GIB, UsageServer, declared


def pod(name, phase="Running", node="a", **options):
    manifest = builders.pod(name, cpu=2, memory="4Gi", spec={"nodeName": node}, **options)
    return {**manifest, "status": {"phase": phase}}


class FakeServer:
    """Stands in for a client: one node, and pods that may be replaced."""

    def __init__(self, *pods):
        self.pods, self.broken = list(pods), False
        self.configuration = SimpleNamespace(host="https://nowhere")
        self.rest_client = SimpleNamespace(pool_manager=SimpleNamespace(request=self.request))

    def request(self, _method, address, **_):
        items = self.pods if "/pods" in address else [builders.node("a")]
        status = 500 if self.broken else 200
        return SimpleNamespace(status=status, data=json.dumps({"items": items, "metadata": {}}).encode())


@pytest.fixture
def server():
    return FakeServer(pod("one"), pod("over", phase="Succeeded"), pod("elsewhere", node="b"))


@pytest.fixture
def machines(server):
    running = UsageServer(server, declared)
    yield running
    running.close()


def values(text):
    """Return value and time by series."""
    lines = [line.rsplit(" ", 2) for line in text.splitlines()]
    return {series: (float(value), int(at)) for series, value, at in lines}


def test_counters_grow_by_what_pods_use_and_who_does_not_run_there_uses_nothing(machines):
    first, second = values(machines.text()), values(machines.text())
    (cpu,) = [series for series in first if series.startswith("container_cpu")]
    seconds = (second[cpu][1] - first[cpu][1]) / 1000
    assert 'pod="one"' in cpu
    assert second[cpu][0] - first[cpu][0] == pytest.approx(2 * seconds, abs=0.01)
    user = 'node_cpu_seconds_total{node="a",cpu="0",mode="user"}'
    assert second[user][0] - first[user][0] == pytest.approx(2.001 * seconds / 8, abs=0.01)
    assert second['node_memory_MemAvailable_bytes{node="a"}'][0] == 60 * GIB - 1
    assert machines.most == {("a", CPU): 2001.0, ("a", MEMORY): 4 * GIB + 1}


def test_only_the_dimensions_that_were_asked_for_are_exported(server):
    machines = UsageServer(server, lambda _pod: {CPU: 1.0, DISK_READ: 5e6}, dimensions=(DISK_READ,))
    try:
        names = {series.partition("{")[0] for series in values(machines.text())}
    finally:
        machines.close()
    assert names == {"node_disk_read_bytes_total", "container_fs_reads_bytes_total"}


def test_frozen_it_says_the_same_with_the_same_times(machines, server):
    before = machines.text()
    machines.frozen = True
    server.pods = []
    assert machines.text() == before


def test_without_the_api_server_a_scrape_fails(machines, server):
    server.broken = True
    assert urllib3.request("GET", f"http://{machines.address}/metrics", retries=False).status == 500
    server.broken = False
    assert urllib3.request("GET", f"http://{machines.address}/metrics", retries=False).status == 200

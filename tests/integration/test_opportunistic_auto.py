"""T_alloc `auto` on a real control plane: peaks by what a real Prometheus has of the last two and a half hours.

One node of 8 cores is full by requests to the last millicore, and uses 4. What its pods used before the test is scraped
once, with the times that it was at.
"""

import time
import urllib.request
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from extender.cluster.resources import CPU
from lab.controlplane import builders, monitoring, pins, ports, workload
from lab.controlplane.monitoring import program, starting
from lab.controlplane.rest import MERGE
from lab.controlplane.rest import request as send
from lab.live.machines import GIB, UsageServer, declared
from tests.chart.rbac import granted_opportunistic
from tests.integration.dovetail import control_on, dovetail_on
from tests.integration.test_opportunistic import create_job, is_opportunistic
from tests.integration.test_seeing import metric

NODE, CORES, T_PREEMPT = "n1", 8, 0.99
USAGE = {"intervalSeconds": 1, "windowSeconds": 4, "staleSeconds": 8}
REGULAR = [f"regular-{number}" for number in range(4)]
STEP, STEPS = 300, 31
HOUR = 3600.0


class MachinesWithPast(UsageServer):
    """Machines that first say what was, once."""

    past = ""
    jumped = 0.0

    def text(self):
        now = super().text()
        past, self.past = self.past, ""
        return past + now

    def used(self, pod):
        """Return what a pod uses: a regular one half of the CPU that it declares, and all others all."""
        use, name = declared(pod), pod["metadata"]["name"]
        more = self.jumped if name == REGULAR[0] else 0.0
        return {**use, CPU: use[CPU] * (0.5 if name in REGULAR else 1.0) + more}


def past(now):
    """Return what one node and its regular pods used: 0.9 and 1.1 cores each by turns, at steps of five minutes."""
    lines = []
    last = int(now // STEP) * STEP
    for number, step in enumerate(range(last - (STEPS - 1) * STEP, last + 1, STEP)):
        cores = 0.9 if number % 2 else 1.1
        for back in (3, 1):
            at, seconds = round(1000 * (step - back)), 10.0 * number + 3 - back
            busy = seconds * cores * len(REGULAR) / CORES
            for cpu in range(CORES):
                for mode, total in (("user", busy), ("idle", seconds - busy)):
                    lines.append(f'node_cpu_seconds_total{{node="{NODE}",cpu="{cpu}",mode="{mode}"}} {total} {at}')
            lines.append(f'node_memory_MemTotal_bytes{{node="{NODE}"}} {64 * GIB} {at}')
            lines.append(f'node_memory_MemAvailable_bytes{{node="{NODE}"}} {60 * GIB} {at}')
            for name in REGULAR:
                labels = f'node="{NODE}",namespace="default",pod="{name}",container="main"'
                lines.append(f"container_cpu_usage_seconds_total{{{labels}}} {seconds * cores} {at}")
                lines.append(f"container_memory_working_set_bytes{{{labels}}} {GIB} {at}")
    return "".join(f"{line}\n" for line in lines)


def begun_long_ago(client):
    """Say of the regular pods that they began three hours ago."""
    began = datetime.fromtimestamp(time.time() - 3 * HOUR, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for name in REGULAR:
        path = f"/api/v1/namespaces/default/pods/{name}/status"
        send(client, "PATCH", path, {"status": {"startTime": began}}, content=MERGE)


@pytest.fixture
def machines(control_plane):
    running = MachinesWithPast(control_plane.client(), lambda pod: running.used(pod))
    yield running
    running.close()


@pytest.fixture
def control(control_plane, machines, tmp_path, request):
    """Run all of Dovetail with `auto`, and Prometheus, with a past where the test says so; return control's address."""
    client = control_plane.client()
    workload.create_nodes(client, [builders.node(NODE, cpu=CORES, memory="16Gi")])
    pods = [builders.pod(name, cpu=2, memory="1Gi", spec={"nodeName": NODE}) for name in REGULAR]
    workload.create_pods(client, pods)
    workload.wait_until(
        lambda: all(pod["status"]["phase"] == "Running" for pod in workload.pods(client)), 60, "regular pods to run"
    )
    begun_long_ago(client)
    machines.past = past(time.time()) if request.param else ""
    (port,) = ports.pick(1)
    job = monitoring.scraped("machines", [machines.address], 1.0, honor_labels=True)
    launch = monitoring.prometheus(program(pins.prometheus()), tmp_path / "prometheus", port, [job])
    with (tmp_path / "prometheus" / "prometheus.yaml").open("a") as file:
        file.write("storage: {tsdb: {out_of_order_time_window: 3h}}\n")
    settings = {
        "usage": {**USAGE, "url": f"http://127.0.0.1:{port}"},
        "opportunistic": {"enabled": True, "threshold": "auto"},
        "control": {"planSeconds": 0.5},
    }
    with starting() as start, dovetail_on(control_plane), granted_opportunistic(control_plane):
        start(launch)
        workload.wait_until(lambda: not machines.past and machines.most, 30, "Prometheus to scrape")
        with control_on(control_plane, **settings) as url:
            workload.wait_until(lambda: metric(url, "dovetail_usage_nodes", state="measured") == 1, 60, "measured")
            yield url


def opportunistic(client):
    return {
        pod["metadata"]["name"]
        for pod in workload.pods(client)
        if pod["spec"].get("nodeName") and is_opportunistic(pod)
    }


def sigmas(url):
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("dovetail_peak_sigmas "))


def after_looks(url, count):
    begun = metric(url, "dovetail_usage_looks_total", result="ok")
    workload.wait_until(
        lambda: metric(url, "dovetail_usage_looks_total", result="ok") >= begun + count, 60, f"{count} more looks"
    )


@pytest.mark.parametrize("control", [True], indirect=True)
def test_pods_start_below_the_peak_that_the_history_predicts_and_a_jump_evicts_only_them(
    control_plane, control, machines, tell
):
    client = control_plane.client()
    # The total was 3.6 and 4.4 cores by turns: 4 in the mean, and 5 sigmas of 0.4 above that is 6.
    workload.wait_until(lambda: metric(control, "dovetail_peak_nodes", history="long") == 1, 60, "a history")
    assert sigmas(control) == 5.0
    left = metric(control, "dovetail_peak_room", resource="cpu")
    assert left == pytest.approx(T_PREEMPT * CORES - 6.0, abs=0.15)

    # Up to 0.99 of 8 cores that leaves 1.92: 11 pods of 0.17.
    create_job(SimpleNamespace(client=client), "job", 20)
    workload.wait_until(lambda: len(opportunistic(client)) >= 11, 60, "11 pods on idle room")
    after_looks(control, 5)
    started = opportunistic(client)
    tell(f"the peaks leave {left:.2f} cores; {len(started)} pods of 0.17 started")
    assert len(started) == 11
    assert machines.most[NODE, CPU] <= T_PREEMPT * CORES * 1000
    assert metric(control, "dovetail_preemptions_total", resource="cpu") == 0

    # 5.87 are used by now. With 2.3 more it is 8.17, and 0.25 above 7.92: two pods.
    machines.jumped = 2300.0
    workload.wait_until(lambda: len(opportunistic(client) & started) <= 9, 60, "two evictions")
    after_looks(control, 5)
    assert len(opportunistic(client) & started) == 9
    assert {pod["metadata"]["name"] for pod in workload.pods(client)} >= set(REGULAR)


@pytest.mark.parametrize("control", [False], indirect=True)
def test_without_a_history_pods_count_as_their_demand_so_a_full_node_has_no_room(control_plane, control, machines):
    client = control_plane.client()
    create_job(SimpleNamespace(client=client), "job", 3)
    workload.wait_until(lambda: metric(control, "dovetail_peak_nodes", history="short") == 1, 60, "a prediction")
    after_looks(control, 5)
    assert metric(control, "dovetail_peak_nodes", history="long") == 0
    assert metric(control, "dovetail_peak_room", resource="cpu") == 0
    assert opportunistic(client) == set()
    assert machines.most[NODE, CPU] <= 4100

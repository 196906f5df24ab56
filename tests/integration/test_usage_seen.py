"""What `dovetail control` measures by a real Prometheus, and what doctor says of it, well and broken."""

import urllib.request

import pytest
import yaml

from charts.render import NAMESPACE
from lab.controlplane import builders, monitoring, pins, ports, workload
from lab.controlplane.monitoring import program, starting
from lab.controlplane.rest import request
from tests.integration.dovetail import control_on, dovetail_on
from tests.integration.exporter import Exporter
from tests.integration.test_seeing import asked, dovetail, metric

SECONDS = 0.5


@pytest.fixture
def exporter():
    server = Exporter((("a:9100", 2.0), ("elsewhere:9100", 1.0)))
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def built():
    """Return the program of Prometheus, which may have to be built first."""
    return program(pins.prometheus())


def test_doctor_tells_a_healthy_prometheus_from_a_broken_one_and_who_has_no_partner(
    control_plane, built, exporter, tmp_path
):
    client = control_plane.client()
    workload.create_nodes(client, [builders.node("a", memory="16Gi"), builders.node("b")])
    (port,) = ports.pick(1)
    usage = {"url": f"http://127.0.0.1:{port}", "intervalSeconds": 1, "windowSeconds": 4, "staleSeconds": 30}
    head = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration"}
    config = tmp_path / "dovetail.yaml"
    config.write_text(yaml.safe_dump({**head, "usage": usage}))

    def usage_findings(control, **options):
        doctor = ("doctor", f"--config={config}", f"--extender={running.url}", f"--control={control}")
        return [it for it in asked(control_plane, *doctor, **options)["findings"] if it["check"] == "usage"]

    with (
        starting() as start,
        dovetail_on(control_plane) as running,
        control_on(control_plane, usage=usage) as control,
    ):
        job = monitoring.scraped("nodes", [exporter.address], SECONDS, honor_labels=True)
        prometheus = start(monitoring.prometheus(built, tmp_path / "data", port, [job]))
        workload.wait_until(
            lambda: metric(control, "dovetail_usage_nodes", state="measured") == 1, 60, "a node to be measured"
        )

        doctor = ("doctor", f"--config={config}", f"--extender={running.url}", f"--control={control}")
        print(dovetail(control_plane, *doctor))
        levels = [(it["level"], it["text"].partition(" measures")[2] or it["text"]) for it in usage_findings(control)]
        assert levels[0][0] == "ok"
        assert levels[0][1].startswith(" 1 node; their samples are ")
        assert levels[1:] == [
            ("warning", "1 node without series: b"),
            ("warning", "series of 1 machine outside this cluster: elsewhere:9100"),
        ]

        prometheus.kill()
        workload.wait_until(
            lambda: metric(control, "dovetail_usage_nodes", state="problem") == 2, 60, "both nodes to be left out"
        )
        print(dovetail(control_plane, *doctor, status=1))
        (broken,) = usage_findings(control, status=1)
        assert broken["level"] == "problem"
        assert broken["text"].startswith(f"the use of nodes is not known: {usage['url']}: ")
        assert metric(control, "dovetail_usage_looks_total", result="unreachable") > 0
        # Readiness does not depend on it, and one event on the Lease says it.
        with urllib.request.urlopen(f"{control}/readyz", timeout=10) as answer:
            assert answer.status == 200
        events = request(client, "GET", f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
        assert [it["involvedObject"]["kind"] for it in events if it["reason"] == "UsageUnknown"][-1:] == ["Lease"]

"""What the pages about installing and running tell to copy fits the chart and the service."""

import re

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from charts.render import CHART, ROOT, SERVICE_ADDRESS, template
from extender.adapters.metrics.control import ControlMetrics
from extender.adapters.metrics.serve import ServeMetrics
from extender.cluster.model import HOLD_GATE
from tests.chart.test_chart import containers, only, with_values

PAGES = ("guide/install", "guide/monitoring", "guide/troubleshooting", "guide/upgrade", "reference/rights")
TEXT = "\n".join((ROOT / "docs" / f"{page}.md").read_text() for page in PAGES)
BLOCKS = [yaml.safe_load(it) for it in re.findall(r"^ *```yaml\n(.*?)^ *```$", TEXT, re.MULTILINE | re.DOTALL)]
ALERTS = {
    "dovetail_pods",
    "dovetail_ready",
    "dovetail_cache_age_seconds",
    "dovetail_overallocated_nodes",
    "dovetail_leader",
    "dovetail_queue_passed_over_seconds",
    "dovetail_held_pods",
    "dovetail_ungated_pods",
}
STATE = ALERTS | {"dovetail_new_pods_held"}
"""Read at each scrape, from a running service; the others are there from the start."""


def block(kind):
    (only_one,) = [document for document in BLOCKS if document.get("kind") == kind]
    return only_one


def test_the_pod_monitor_selects_the_pods_and_names_their_ports(objects):
    monitor = block("PodMonitor")["spec"]
    ports = set()
    for name in ("dovetail", "dovetail-control"):
        labels = only(objects, "Deployment", name)["spec"]["template"]["metadata"]["labels"]
        assert monitor["selector"]["matchLabels"].items() <= labels.items()
        ports |= {it["name"] for found in containers(objects, name).values() for it in found["ports"]}

    scraped = [it["port"] for it in monitor["podMetricsEndpoints"]]
    assert scraped == ["extender", "control"]
    assert ports - set(scraped) <= {"scheduler"}
    assert {it["path"] for it in monitor["podMetricsEndpoints"]} == {"/metrics"}


def test_metrics_that_the_page_names_are_exported():
    rooms = ROOT / "extender" / "adapters"
    source = "".join((rooms / file).read_text() for file in ("metrics/serve.py", "metrics/control.py"))
    texts = [made("0").text().decode() for made in (ServeMetrics, counted_by_control)]
    started = {it.name for text in texts for it in text_string_to_metric_families(text)}
    named = set(re.findall(r"\bdovetail_[a-z_]+", TEXT))

    assert named >= STATE
    assert all(f'"{name}"' in source for name in STATE)
    assert {re.sub("_(count|total)$", "", name) for name in named - STATE} <= started


def counted_by_control(version):
    """Return control's metrics with one release counted: a counter with labels shows nothing before."""
    metrics = ControlMetrics(version)
    metrics.releases.labels("nominated").inc()
    return metrics


def test_the_alerts_are_on_state():
    (group,) = block("PrometheusRule")["spec"]["groups"]

    assert set(re.findall(r"dovetail_\w+", " ".join(it["expr"] for it in group["rules"]))) == ALERTS
    assert len(group["rules"]) == len(ALERTS)


def test_the_template_that_gates_itself_names_the_gate_and_the_scheduler_of_the_chart():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    spec = block("Job")["spec"]["template"]["spec"]

    assert spec["schedulingGates"] == [{"name": HOLD_GATE}]
    assert spec["schedulerName"] == values["scheduler"]["name"]


@pytest.mark.chart
@pytest.mark.parametrize("name", ["dovetail-control", "dovetail-drain"])
def test_each_right_has_its_line_in_the_tables(helm, name):
    """The rights table of each account names every resource and verb of its ClusterRole, and no other."""
    labelled = [{"name": "q", "namespaces": {"team": "x"}}]
    more = {
        "config__queues": labelled,
        "config__order": "auto",
        "config__usage": {"url": "http://prometheus.test:9090"},
    }
    values = with_values("scheduler", config__opportunistic__enabled=True, **more)
    rules = only(list(yaml.safe_load_all(template(helm, values))), "ClusterRole", name)["rules"]
    shipped = {(resource, verb) for it in rules for resource in it["resources"] for verb in it["verbs"]}
    section = (ROOT / "docs" / "reference" / "rights.md").read_text().partition("## Rights\n")[2].partition("\n## ")[0]
    (part,) = [it for it in section.split("\n\n**") if f"`{name}`" in it]
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in part.splitlines() if line.startswith("|")]
    told = {
        (resource, verb)
        for resources, verbs in rows[2:]
        if not resources.startswith("leases")
        for resource in re.sub(r" \(.*\)", "", resources).split(", ")
        for verb in verbs.split(", ")
    }

    assert told == shipped


@pytest.mark.chart
def test_the_network_policies_render_in_their_modes(helm):
    shown = [it for it in BLOCKS if "networkPolicy" in it]

    assert [it.get("mode", "scheduler") for it in shown] == ["scheduler", "existing"]
    for values in shown:
        text = template(helm, {**values, "existing": {"clusterIP": SERVICE_ADDRESS}})
        for name in ("dovetail", "dovetail-control"):
            policy = only(list(yaml.safe_load_all(text)), "NetworkPolicy", name)
            assert policy["spec"]["ingress"][0]["from"] == values["networkPolicy"]["from"]


def test_kubeadm_and_the_static_pod_mount_the_same_file():
    kubeadm = block("ClusterConfiguration")["scheduler"]
    (pod,) = [it["spec"] for it in BLOCKS if "containers" in it.get("spec", {})]
    (argument,), (volume,) = kubeadm["extraArgs"], kubeadm["extraVolumes"]
    (container,), (host,) = pod["containers"], pod["volumes"]

    assert f"--{argument['name']}={argument['value']}" in container["command"]
    assert argument["value"] == volume["hostPath"] == volume["mountPath"] == host["hostPath"]["path"]
    assert container["volumeMounts"][0]["mountPath"] == volume["mountPath"]
    assert volume["pathType"] == host["hostPath"]["type"] == "File"

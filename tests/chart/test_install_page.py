"""What docs/install.md tells to copy fits the chart and the service."""

import re

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from charts.render import ROOT, SERVICE_ADDRESS, template
from extender.adapters.metrics import Metrics
from tests.chart.test_chart import containers, only

TEXT = (ROOT / "docs" / "install.md").read_text()
BLOCKS = [yaml.safe_load(it) for it in re.findall(r"^ *```yaml\n(.*?)^ *```$", TEXT, re.MULTILINE | re.DOTALL)]
STATE = {"dovetail_ready", "dovetail_cache_age_seconds", "dovetail_overallocated_nodes"}
"""Read at each scrape, from a running service; the others are there from the start."""


def block(kind):
    (found,) = [it for it in BLOCKS if it.get("kind") == kind]
    return found


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
    source = (ROOT / "extender" / "adapters" / "metrics.py").read_text()
    started = {it.name for it in text_string_to_metric_families(Metrics("0").text().decode())}
    named = set(re.findall(r"\bdovetail_[a-z_]+", TEXT))

    assert named >= STATE
    assert all(f'"{name}"' in source for name in STATE)
    assert {name.removesuffix("_count") for name in named - STATE} <= started


def test_the_alerts_are_on_state():
    (group,) = block("PrometheusRule")["spec"]["groups"]

    assert {it["expr"].split()[0] for it in group["rules"]} == STATE


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

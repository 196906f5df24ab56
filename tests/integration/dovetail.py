"""Dovetail on the control plane of the tests: the extender and a second scheduler, with the chart's own rights.

And the truth to hold them to: what is allocated where, counted from the API server and nothing else.
"""

import copy
import http.client
import json
import urllib.request
from collections import Counter, defaultdict
from contextlib import closing, contextmanager, suppress

import pytest
import yaml
from kubernetes.utils import parse_quantity

from charts.render import NAMESPACE, ROOT
from lab.controlplane import workload
from lab.controlplane.rest import RequestRefused, request
from lab.live.machines import amounts
from tests.chart.rbac import CONTROL_ACCOUNT, granted

IO = ("disk-read", "disk-write", "network-in", "network-out")
SCHEDULER = "dovetail"
BY_ORDER = pytest.mark.parametrize("order", ["gates", "auto"])
"""For what must hold for pods with our gate in either order; tests give the gate themselves, without the policies."""


def scheduler_configuration(url, *, ignorable=False, whole_nodes=False, preempt=True, percentage=None):
    """Return the configuration that the chart ships, for this extender; kube-scheduler need not lead here.

    It asks about a `percentage` of the nodes, at least 100; None: as the chart says.
    """
    objects = yaml.safe_load_all((ROOT / "manifests" / "scheduler.yaml").read_text())
    (text,) = [it["data"]["kube-scheduler.yaml"] for it in objects if "kube-scheduler.yaml" in it.get("data", {})]
    told = yaml.safe_load(text)
    told["leaderElection"] = {"leaderElect": False}
    told["extenders"][0] |= {"urlPrefix": url, "ignorable": ignorable, "nodeCacheCapable": not whole_nodes}
    if percentage is not None:
        told["percentageOfNodesToScore"] = percentage
    if not preempt:
        del told["extenders"][0]["preemptVerb"]
    return told


class Dovetail:
    """A running extender with its scheduler."""

    def __init__(self, control_plane, url):
        self.control_plane = control_plane
        self.client = control_plane.client()
        self.url = url

    def call(self, verb, body):
        """POST to a verb; return status and decoded reply."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with closing(http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=10)) as connection:
            with suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
                connection.request("POST", f"/{verb}", data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode()

    def metric(self, name, **labels):
        """Return the sum of a metric's samples with these labels."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        found = [line for line in lines if line.split("{")[0].split(" ")[0] == name and all(w in line for w in wanted)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)

    def allocated(self):
        """Return what its caches say is allocated, by dimension (cores, bytes, bytes per second)."""
        names = ("cpu", "memory", *IO)
        return {name: self.metric("dovetail_allocated", dimension=name) for name in names}

    def wait_current(self, seconds=20):
        """Wait until its caches say what the API server says."""
        workload.wait_until(
            lambda: self.allocated() == allocated_in_truth(self.client), seconds, "the caches to be right again"
        )

    def decisions(self, event):
        """Return its log lines about one kind of decision."""
        lines = map(json.loads, filter(None, self.control_plane.log("dovetail").read_text().splitlines()))
        return [line for line in lines if line["event"] == event]


@contextmanager
def dovetail_on(control_plane, *, settings=None, chosen_by="filter", **options):
    """Run the extender and the second scheduler under exactly the rights that the chart ships."""
    told = {"placement": {"chosenBy": chosen_by}, **(settings or {})}
    with granted(control_plane, "scheduler") as account:
        url = control_plane.add_extender(told, user=account)
        try:
            control_plane.add_scheduler(scheduler_configuration(url, **options), user=account, name="second-scheduler")
            try:
                yield Dovetail(control_plane, url)
            finally:
                control_plane.remove_scheduler("second-scheduler")
        finally:
            control_plane.remove_scheduler("dovetail")


@contextmanager
def control_on(
    control_plane, *, lease=None, user=CONTROL_ACCOUNT, name="dovetail-control", chosen_by="filter", **settings
):
    """Run `dovetail control` under exactly the rights that `dovetail_on` has given it; `lease` replaces defaults."""
    client = control_plane.client()
    with suppress(RequestRefused):
        request(client, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    told = {
        "placement": {"chosenBy": chosen_by},
        "control": {"lease": lease or {}, **settings.pop("control", {})},
        **settings,
    }
    url = control_plane.add_control(told, user=user, name=name)
    try:
        yield url
    finally:
        control_plane.remove_scheduler(name)


def demands(client):
    """Return what each pod that holds a node demands, by node: added up here, by nothing of ours.

    For pods of plain containers that were not resized; cpu in millicores.
    """
    held = defaultdict(list)
    for pod in workload.pods(client):
        if pod["spec"].get("nodeName") and pod["status"]["phase"] not in ("Succeeded", "Failed"):
            demand = Counter(rates(pod, "dovetail.dev/demand"))
            for container in pod["spec"]["containers"]:
                demand.update(amounts(container["resources"].get("requests", {})))
            held[pod["spec"]["nodeName"]].append(demand)
    return held


def offers(client):
    """Return what each node offers, by node."""
    found = {}
    for node in workload.nodes(client):
        declared = rates(node, "dovetail.dev/capacity")
        found[node["metadata"]["name"]] = {**amounts(node["status"]["allocatable"]), **declared}
    return found


def rates(manifest, annotation):
    """Return bytes per second."""
    declared = json.loads(manifest["metadata"].get("annotations", {}).get(annotation, "{}"))
    return {name: float(parse_quantity(quantity)) for name, quantity in declared.items()}


def over_allocated(client):
    """Return by how much each (node, dimension) is over-allocated; empty where nothing is."""
    held, over = demands(client), {}
    for node, offered in offers(client).items():
        taken = sum(held[node], Counter())
        over |= {(node, d): taken[d] - limit for d, limit in offered.items() if taken[d] > limit}
    return over


def allocated_in_truth(client):
    """Return what is allocated on the nodes that declare a dimension (cores, bytes, bytes per second)."""
    held, total = demands(client), dict.fromkeys(("cpu", "memory", *IO), 0.0)
    for node, offered in offers(client).items():
        taken = sum(held[node], Counter())
        for dimension in total.keys() & offered.keys():
            total[dimension] += taken[dimension]
    total["cpu"] /= 1000
    return total


def mixed_pods(builders, count, draw, *, prefix="pod", scheduler_name=SCHEDULER):
    """Return pods heavy in one of CPU, memory, disk and network; I/O out of 1,000 a node."""
    made = []
    for number in range(count):
        demand = {dimension: draw.randint(5, 60) for dimension in IO}
        heavy = draw.choice(("cpu", "memory", "disk-read", "network-in"))
        if heavy in demand:
            demand[heavy] = draw.randint(100, 300)
        cpu, memory = draw.randint(100, 400), draw.randint(200, 900)
        made.append(
            builders.pod(
                f"{prefix}-{number:04d}",
                cpu=f"{cpu * (5 if heavy == 'cpu' else 1)}m",
                memory=f"{memory * (5 if heavy == 'memory' else 1)}Mi",
                demand=demand,
                scheduler_name=scheduler_name,
            )
        )
    return made


def equal_nodes(builders, count, **options):
    """Return nodes of 16 cores, 64 GiB and 1,000 bytes a second in each I/O dimension."""
    offered = {"cpu": 16, "memory": "64Gi", "capacity": dict.fromkeys(IO, 1000), **options}
    return [builders.node(f"node-{number:03d}", **copy.deepcopy(offered)) for number in range(count)]

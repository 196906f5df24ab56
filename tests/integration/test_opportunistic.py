"""Pods on idle room, on a real control plane with a real Prometheus: started, promoted, evicted, and left alone.

Two nodes are full by requests to the last millicore and use half of that; what their pods use follows the pods.
"""

import json
import random
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from lab.controlplane import builders, monitoring, pins, ports, workload
from lab.controlplane.component import Component
from lab.controlplane.monitoring import program, starting
from lab.controlplane.rest import request
from lab.controlplane.running import ControlPlane
from lab.live.machines import REGULAR_REQUESTS, UsageServer, declared
from tests.chart.rbac import CONTROL_ACCOUNT, granted_opportunistic
from tests.integration.dovetail import control_on, dovetail_on
from tests.integration.forking import fork_service
from tests.integration.test_seeing import asked, metric

pytestmark = pytest.mark.own_control_plane

HOLD = "dovetail.dev/hold"
CORES = 8
T_ALLOC, T_PREEMPT = 0.8, 0.99
POD_CORES = 0.17
USAGE = {"intervalSeconds": 1, "windowSeconds": 4, "staleSeconds": 8}
LEASE = {"seconds": 2, "renewSeconds": 1, "retrySeconds": 0.2}
JOBS = "/apis/batch/v1/namespaces/default/jobs"
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "verbs": ["patch", "update", "create"],
            "resources": [{"group": "", "resources": ["pods", "pods/status", "pods/resize", "pods/eviction"]}],
        },
        {"level": "None"},
    ],
}


@pytest.fixture(scope="module")
def audited(programs, tmp_path_factory):
    """Run a control plane whose API server writes down who wrote to which pod; return it and that file."""
    folder = tmp_path_factory.mktemp("audit")
    policy, log = folder / "policy.yaml", folder / "audit.log"
    policy.write_text(yaml.safe_dump(POLICY))
    flags = {"kube-apiserver": [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]}
    with ControlPlane(programs, flags=flags, starter=fork_service) as running:
        yield running, log


@pytest.fixture(scope="module")
def prometheus_program():
    """Return the program of Prometheus, which may have to be built first."""
    return program(pins.prometheus())


@dataclass
class Scene:
    """What a test acts on: two nodes of its own, and `part`, by name: which part of what it declares a pod uses.

    Without that a regular pod of the start uses half of it, and any other all of it.
    """

    control_plane: ControlPlane
    machines: UsageServer
    url: str
    audit: Path
    prometheus: Component
    nodes: tuple[str, str] = ("", "")
    part: dict = field(default_factory=dict)
    logged: int = 0
    tests: int = 0

    @property
    def client(self):
        return self.control_plane.client()

    def begin(self):
        """Make two full nodes at half use, and wait until they are measured."""
        self.tests += 1
        self.nodes, self.part = (f"a{self.tests}", f"b{self.tests}"), {}
        self.machines.begin(self.used)
        self.logged = len(self._log_lines())
        workload.create_nodes(self.client, [builders.node(name, cpu=CORES, memory="16Gi") for name in self.nodes])
        regular = [
            builders.pod(f"regular-{node}-{n}", cpu=2, memory="4Gi", spec={"nodeName": node})
            for node in self.nodes
            for n in range(4)
        ]
        workload.create_pods(self.client, regular)
        self.wait_measured(2)

    def wait_measured(self, count):
        workload.wait_until(
            lambda: metric(self.url, "dovetail_usage_nodes", state="measured") == count, 60, f"{count} measured nodes"
        )

    def end(self):
        for job in request(self.client, "GET", JOBS)["items"]:
            path = f"{JOBS}/{job['metadata']['name']}"
            request(self.client, "DELETE", path, propagationPolicy="Background")
        workload.delete_all_pods(self.client)
        workload.delete_all_nodes(self.client)
        self.machines.frozen = False
        if self.prometheus.pid is None:
            self.prometheus.start()

    def pods(self):
        return {pod["metadata"]["name"]: pod for pod in workload.pods(self.client)}

    def opportunistic(self, node=None):
        """Return the pods that run on a node, or on any, without requests, by name; what has ended takes no place."""
        return {
            name: pod
            for name, pod in self.pods().items()
            if pod["spec"].get("nodeName") and node in (None, pod["spec"]["nodeName"]) and is_opportunistic(pod)
            if pod["status"].get("phase") not in ("Failed", "Succeeded")
        }

    def use(self, node):
        """Return which part of a node's CPU its pods use."""
        pods = [pod for pod in self.pods().values() if pod["spec"].get("nodeName") == node]
        return sum(declared(pod)["cpu"] * self.used_by(pod) for pod in pods) / 1000 / CORES

    def used_by(self, pod):
        name = pod["metadata"]["name"]
        return self.part.get(name, 0.5 if name.startswith("regular") else 1.0)

    def used(self, pod):
        """Return what a pod uses, in millicores and bytes."""
        return {dimension: amount * self.used_by(pod) for dimension, amount in declared(pod).items()}

    def jump(self, node, cores):
        """Let the four regular pods of a node use so many cores together from now on."""
        self.part |= {f"regular-{node}-{n}": cores / CORES for n in range(4)}

    def log(self, event):
        """Return the lines of control's log about one kind of event since this test began."""
        lines = map(json.loads, self._log_lines()[self.logged :])
        return [line for line in lines if line["event"] == event]

    def _log_lines(self):
        return self.control_plane.log("dovetail-control").read_text().splitlines()

    def after_looks(self, count):
        """Wait until control has looked so many times more."""

        def looks():
            return metric(self.url, "dovetail_usage_looks_total", result="ok")

        begun = looks()
        workload.wait_until(lambda: looks() >= begun + count, 60, f"{count} more looks")

    def filled(self):
        """Wait until no further pod fits below T_alloc on either node, and return which part of each is used."""

        def use():
            parts = [self.use(node) for node in self.nodes]
            return parts if min(parts) > T_ALLOC - POD_CORES / CORES else None

        return workload.wait_until(use, 60, f"the use to rise to {T_ALLOC:g}")

    def writes(self):
        """Return what control wrote to each pod and was not refused, by name: (verb, subresource) in order."""
        found = defaultdict(list)
        for event in map(json.loads, self.audit.read_text().splitlines()):
            about, code = event["objectRef"], event.get("responseStatus", {}).get("code", 0)
            if event["user"]["username"] == CONTROL_ACCOUNT and code < 300:
                found[about["name"]].append((event["verb"], about.get("subresource", "")))
        return found

    def writes_of(self, job):
        return [writes for name, writes in self.writes().items() if name.startswith(job)]


def is_opportunistic(pod):
    requests = pod["spec"]["containers"][0]["resources"].get("requests", {})
    counts = any(requests.get(name, "0") != "0" for name in ("cpu", "memory"))
    return REGULAR_REQUESTS in pod["metadata"].get("annotations", {}) and not counts


@pytest.fixture(scope="module")
def stage(audited, prometheus_program, tmp_path_factory):
    """Run all of Dovetail and Prometheus on a control plane without nodes."""
    control_plane, audit = audited
    machines = UsageServer(control_plane.client(), declared)
    (port,) = ports.pick(1)
    settings = {
        "usage": {**USAGE, "url": f"http://127.0.0.1:{port}"},
        "opportunistic": {"enabled": True},
        "control": {"planSeconds": 0.5},
    }
    job = monitoring.scraped("machines", [machines.address], 1.0, honor_labels=True)
    launch = monitoring.prometheus(prometheus_program, tmp_path_factory.mktemp("prometheus"), port, [job])
    try:
        with (
            starting() as start,
            dovetail_on(control_plane),
            granted_opportunistic(control_plane),
            control_on(control_plane, lease=LEASE, **settings) as url,
        ):
            yield Scene(control_plane, machines, url, audit, start(launch))
    finally:
        machines.close()


@pytest.fixture
def scene(stage):
    """Give two full nodes at half use, measured."""
    try:
        stage.begin()
        yield stage
    finally:
        stage.end()


def create_job(
    scene, name, count, *, cpu="170m", memory="256Mi", limits=None, annotations=None, duration=None, path=JOBS
):
    """Create a Job of held pods; an eviction does not count against it."""
    template = builders.pod(
        name,
        cpu=cpu,
        memory=memory,
        limits=limits,
        annotations=annotations,
        duration=duration,
        scheduler_name="dovetail",
        spec={"schedulingGates": [{"name": HOLD}]},
    )
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    spec = {
        "completions": count,
        "parallelism": count,
        "podFailurePolicy": {"rules": [ignored]},
        "template": {"metadata": {"annotations": template["metadata"]["annotations"]}, "spec": template["spec"]},
    }
    request(scene.client, "POST", path, {"metadata": {"name": name}, "spec": spec})


def names_of(pods, prefix):
    return {name for name in pods if name.startswith(prefix)}


def test_held_pods_of_jobs_run_on_what_others_do_not_use_up_to_t_alloc_and_not_beyond(scene, tell, tmp_path):
    create_job(scene, "job", 40)
    create_job(scene, "guaranteed", 2, limits={"cpu": "170m", "memory": "256Mi"})
    create_job(scene, "never", 2, annotations={"dovetail.dev/opportunistic": "never"})
    use = scene.filled()
    scene.after_looks(5)

    # 8 cores, of which regular pods use 4: up to 6.4 there is room for 14 pods of 170m on each node.
    assert max(scene.use(node) for node in scene.nodes) <= T_ALLOC + 1e-6
    assert max(scene.machines.most[node, "cpu"] for node in scene.nodes) <= T_ALLOC * CORES * 1000 + 2
    pods, started = scene.pods(), scene.opportunistic()
    assert names_of(started, "job") == set(started)
    for pod in started.values():
        assert pod["metadata"]["annotations"]["dovetail.dev/nominated"] == pod["spec"]["nodeName"]
        assert pod["status"]["qosClass"] == "Burstable"
    for name in names_of(pods, "guaranteed") | names_of(pods, "never"):
        assert pods[name]["spec"]["schedulingGates"] == [{"name": HOLD}]
        assert REGULAR_REQUESTS not in pods[name]["metadata"].get("annotations", {})
    writes = [len(scene.writes()[name]) for name in started]
    tell(f"{len(started)} pods, use {use[0]:.3f} and {use[1]:.3f}, writes per pod {Counter(writes)}")
    assert max(writes) <= 4

    # A pod that is left says what it finds no room of; one that may not run there says nothing.
    config = tmp_path / "dovetail.yaml"
    kind = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration"}
    config.write_text(yaml.safe_dump({**kind, "usage": {"url": "http://nobody"}, "opportunistic": {"enabled": True}}))
    held = [name for name, pod in pods.items() if name.startswith("job") and pod["spec"].get("schedulingGates")]
    never = next(iter(names_of(pods, "never")))
    where = (f"--control={scene.url}", f"--config={config}")

    def no_idle(name):
        return asked(scene.control_plane, "explain", "pod", f"default/{name}", *where)["no_idle"]

    # On a busy machine nothing may be measured at a moment.
    short = "no node has enough: mostly cpu is short, the most is 0"
    told = workload.wait_until(lambda: (text := no_idle(held[0])).startswith(short) and text, 60, short)
    tell(f"a held pod that finds no idle room: {told}")
    assert no_idle(never) == ""


def test_where_use_jumps_the_fewest_opportunistic_pods_are_evicted_none_twice_and_no_regular_one(scene):
    node = scene.nodes[0]
    create_job(scene, "jump", 28)
    scene.filled()
    before = scene.opportunistic(node)
    assert len(before) == 14
    # 14 of 0.17 use 2.38. With 5.84 it is 8.22 in all, and 0.3 above 7.92: one pod of 0.17 is not enough, two are.
    scene.jump(node, 5.84)
    workload.wait_until(lambda: len(scene.log("evicted")) >= 2, 60, "evictions")
    scene.after_looks(6)

    victims = Counter(line["pod"].removeprefix("default/") for line in scene.log("evicted"))
    assert len(victims) == 2
    assert set(victims) <= set(before)
    assert set(victims.values()) == {1}
    assert set(scene.opportunistic(node)) == set(before) - set(victims)
    events = request(scene.client, "GET", "/api/v1/namespaces/default/events")["items"]
    assert set(victims) <= {event["involvedObject"]["name"] for event in events if event["reason"] == "Preempted"}
    assert len(names_of(scene.pods(), "regular")) == 8


def test_where_a_regular_pod_ends_opportunistic_ones_are_promoted_in_place_and_kube_scheduler_counts_them(scene):
    node = scene.nodes[1]
    create_job(scene, "room", 28)
    scene.filled()
    before = scene.opportunistic(node)
    request(scene.client, "DELETE", f"/api/v1/namespaces/default/pods/regular-{node}-0")

    def promoted():
        pods = scene.pods()
        return {name: pods[name] for name in before if name in pods and not is_opportunistic(pods[name])}

    # 2 cores are free, room for 11 pods of 0.17; 0.13 is left.
    workload.wait_until(lambda: len(promoted()) == 11, 60, "11 promotions")
    scene.after_looks(3)
    found = promoted()
    assert len(found) == 11
    for name, pod in found.items():
        assert pod["metadata"]["uid"] == before[name]["metadata"]["uid"]
        assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "170m", "memory": "256Mi"}
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
        assert pod["spec"]["nodeName"] == node
    workload.create_pods(scene.client, [builders.pod("late", cpu="140m", memory="1Mi", scheduler_name="dovetail")])

    def refused():
        conditions = workload.pod(scene.client, "late")["status"].get("conditions", ())
        return [it["message"] for it in conditions if it["type"] == "PodScheduled" and it["status"] == "False"]

    (message,) = workload.wait_until(refused, 30, "the pod to be refused")
    assert "Insufficient cpu" in message


def test_control_killed_at_random_loses_nothing_leaves_nothing_stuck_and_releases_nothing_twice(scene, tell):
    draw, kills = random.Random(14), 0
    create_job(scene, "killed", 40, duration=1)

    def status(name):
        return request(scene.client, "GET", f"{JOBS}/killed")["status"].get(name, 0)

    for _ in range(4):
        time.sleep(draw.uniform(0.2, 1.5))
        if status("succeeded") < 35:
            scene.control_plane.kill("dovetail-control")
            kills += 1
            scene.control_plane.start("dovetail-control")
    workload.wait_until(lambda: status("succeeded") == 40, 90, "the Job to end")

    released = Counter(line["uid"] for line in scene.log("released"))
    how = Counter(line["how"] for line in scene.log("released"))
    tell(f"{kills} kills, {dict(how)}, writes {Counter(map(len, scene.writes_of('killed')))}")
    assert kills >= 3
    assert len(released) >= 35  # a line may be lost with its process
    assert max(released.values()) == 1
    assert status("failed") == 0
    assert {pod["status"]["phase"] for name, pod in scene.pods().items() if name.startswith("killed")} == {"Succeeded"}


def test_a_regular_pod_that_only_opportunistic_ones_keep_out_gets_a_place_at_once(scene):
    # Ten places: 4 regular pods and, as a fifth stays for regular ones, 4 opportunistic ones. 100m are free as regular.
    place = builders.node("places", cpu="8100m", memory="17Gi")
    place["status"]["allocatable"]["pods"] = place["status"]["capacity"]["pods"] = "10"
    workload.create_nodes(scene.client, [place])
    regular = [builders.pod(f"regular-places-{n}", cpu=2, memory="4Gi", spec={"nodeName": "places"}) for n in range(4)]
    workload.create_pods(scene.client, regular)
    scene.wait_measured(3)
    create_job(scene, "idle", 40)
    workload.wait_until(lambda: len(scene.opportunistic("places")) == 4, 60, "4 opportunistic pods")
    assert scene.log("evicted") == []

    small = {"cpu": "10m", "memory": "1Mi"}
    create_job(scene, "small", 3, limits=small, **small)  # Guaranteed: never opportunistic

    def placed():
        return [name for name, pod in scene.pods().items() if name.startswith("small") and pod["spec"].get("nodeName")]

    workload.wait_until(lambda: len(placed()) == 3, 60, "3 regular pods on the node")
    (line,) = scene.log("evicted")
    assert (line["node"], line["why"], line["short"]) == ("places", "regular pods", ["pods"])
    assert len(scene.opportunistic("places")) == 3
    assert len(names_of(scene.pods(), "regular")) == 12


@pytest.mark.parametrize("how", ["frozen", "stopped"])
def test_without_measurement_nobody_is_started_on_idle_room_or_evicted_and_regular_work_goes_on(scene, how):
    create_job(scene, how, 36)
    scene.filled()
    started = scene.opportunistic()
    if how == "stopped":
        scene.prometheus.kill()
    else:
        scene.machines.frozen = True
    scene.wait_measured(0)

    # Now there is idle room on one node, and the other is overloaded: nobody sees that.
    scene.jump(scene.nodes[0], 1.0)
    scene.jump(scene.nodes[1], 8.0)
    workload.create_nodes(scene.client, [builders.node(f"new-{how}", cpu="700m", memory="4Gi")])

    def on_new_node():
        return [pod for pod in scene.pods().values() if pod["spec"].get("nodeName") == f"new-{how}"]

    workload.wait_until(lambda: len(on_new_node()) == 4, 30, "regular releases")
    time.sleep(2)
    assert not any(is_opportunistic(pod) for pod in on_new_node())
    assert set(scene.opportunistic()) == set(started)
    assert scene.log("evicted") == []

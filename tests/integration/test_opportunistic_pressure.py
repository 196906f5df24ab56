"""Evictions for CPU by pressure, with a real Prometheus: a full CPU harms nobody until regular pods wait for it.

But who gets next to nothing of it is moved.
"""

from collections import defaultdict

import pytest
import yaml

from lab.controlplane import builders, monitoring, pins, ports, workload
from lab.controlplane.monitoring import program, starting
from lab.controlplane.rest import request
from lab.live.machines import REGULAR_REQUESTS, UsageServer, declared
from tests.chart.rbac import granted_opportunistic
from tests.integration.dovetail import control_on, dovetail_on
from tests.integration.test_seeing import asked, metric

HOLD = "dovetail.dev/hold"
NODE, CORES = "pressed", 8
IDLE = "idle"
USAGE = {"intervalSeconds": 1, "windowSeconds": 4, "staleSeconds": 8}
OPPORTUNISTIC = {"enabled": True, "evictBy": "pressure"}
HEAD = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration"}


class PressedMachines(UsageServer):
    """Machines whose kubelets also say for which part of the time pods wait for CPU, by name: `waits`.

    Of that, their own limit holds them for `by_limit`. Opportunistic pods wait nearly always, those that have ended
    never: Kubernetes 1.34 keeps an evicted pod for as long as its Job makes no other. While `silent`, nothing is said.
    """

    def __init__(self, client):
        self.waits, self.by_limit, self.silent = {}, {}, False
        self._waited = defaultdict(float)
        super().__init__(client, declared)

    def _look(self):
        before = self._at
        lines = super()._look().splitlines()
        seconds, milliseconds = self._at - before, round(1000 * self._at)
        for pod in workload.pods(self.client):
            name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
            if pod["status"]["phase"] != "Running" or self.silent:
                continue
            opportunistic = REGULAR_REQUESTS in pod["metadata"].get("annotations", {})
            labels = f'node="{node}",namespace="{pod["metadata"]["namespace"]}",pod="{name}",container="main"'
            parts = {
                "container_pressure_cpu_waiting_seconds_total": self.waits.get(name, 0.9 if opportunistic else 0.02),
                "container_cpu_cfs_throttled_seconds_total": self.by_limit.get(name, 0.0),
            }
            for series, part in parts.items():
                self._waited[series, name] += seconds * part
                lines.append(f"{series}{{{labels}}} {self._waited[series, name]} {milliseconds}")
        return "".join(f"{line}\n" for line in lines)


def using(part):
    """Return what a pod uses, where a regular one uses this part of what it declares and all others all of it."""

    def use(pod):
        own = part if pod["metadata"]["name"].startswith("regular") else 1.0
        return {dimension: own * amount for dimension, amount in declared(pod).items()}

    return use


@pytest.fixture
def machines(control_plane):
    running = PressedMachines(control_plane.client())
    running.begin(using(0.5))
    yield running
    running.close()


@pytest.fixture
def addresses(control_plane, machines, tmp_path):
    """Run Dovetail and Prometheus on one full node at half use; return the addresses of `control` and `serve`."""
    client = control_plane.client()
    (port,) = ports.pick(1)
    usage = {**USAGE, "url": f"http://127.0.0.1:{port}"}
    job = monitoring.scraped("machines", [machines.address], 1.0, honor_labels=True)
    launch = monitoring.prometheus(program(pins.prometheus()), tmp_path / "prometheus", port, [job])
    (tmp_path / "dovetail.yaml").write_text(yaml.safe_dump({**HEAD, "usage": usage, "opportunistic": OPPORTUNISTIC}))
    workload.create_nodes(client, [builders.node(NODE, cpu=CORES, memory="16Gi")])
    regular = [builders.pod(f"regular-{n}", cpu=2, memory="1Gi", spec={"nodeName": NODE}) for n in range(4)]
    workload.create_pods(client, regular)
    settings = {"usage": usage, "opportunistic": OPPORTUNISTIC, "control": {"planSeconds": 0.5}}
    with (
        starting() as start,
        dovetail_on(control_plane) as running,
        granted_opportunistic(control_plane),
        control_on(control_plane, **settings) as url,
    ):
        start(launch)
        workload.wait_until(lambda: metric(url, "dovetail_usage_nodes", state="measured") == 1, 60, "a measured node")
        yield url, running.url


def create_job(client, name, count):
    """Create a Job of held pods of 0.17 cores; an eviction does not count against it."""
    held = {"schedulingGates": [{"name": HOLD}]}
    template = builders.pod(name, cpu="170m", memory="256Mi", scheduler_name="dovetail", spec=held)
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    spec = {
        "completions": count,
        "parallelism": count,
        "podFailurePolicy": {"rules": [ignored]},
        "template": {"metadata": {"annotations": template["metadata"]["annotations"]}, "spec": template["spec"]},
    }
    request(client, "POST", "/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": name}, "spec": spec})


def on_idle_room(client):
    """Return the pods by name that were made opportunistic and have a node."""
    return {
        pod["metadata"]["name"]: pod
        for pod in workload.pods(client)
        if pod["spec"].get("nodeName") and REGULAR_REQUESTS in pod["metadata"].get("annotations", {})
    }


def after_looks(control, count):
    """Wait until `control` has looked so often again at what is used."""

    def looks():
        return metric(control, "dovetail_usage_looks_total", result="ok")

    begun = looks()
    workload.wait_until(lambda: looks() >= begun + count, 120, f"{count} more looks", every=0.5)


def preempted_events(client, job):
    """Return what the events say of the pods of a Job that were evicted, by name; others' stay for an hour."""
    events = request(client, "GET", "/api/v1/namespaces/default/events")["items"]
    said = defaultdict(list)
    for event in events:
        if event["reason"] == "Preempted" and event["involvedObject"]["name"].startswith(f"{job}-"):
            said[event["involvedObject"]["name"]].append(event["message"])
    return said


def test_a_full_cpu_evicts_nobody_until_a_regular_pod_waits_and_then_a_tenth_of_the_node_comes_free(
    control_plane, machines, addresses, tmp_path, tell
):
    client, (control, serve) = control_plane.client(), addresses

    def preempted():
        return metric(control, "dovetail_preemptions_total", resource="cpu")

    # 1. 14 pods of 0.17 cores fill the node up to 6.4 of 8.
    create_job(client, "pressed", 28)
    workload.wait_until(lambda: len(on_idle_room(client)) == 14, 60, "14 opportunistic pods")

    # 2. Regular pods use 7 of the 8 cores: with 2.38 more the CPU is full. Opportunistic pods wait for most of the
    #    time; the regular ones do not, but for one that its own limit holds.
    machines.begin(using(7 / CORES))
    machines.waits["regular-3"] = machines.by_limit["regular-3"] = 0.9
    after_looks(control, 10)
    assert machines.most[NODE, "cpu"] > 0.99 * CORES * 1000
    assert not preempted()

    # 3. How long they wait is not known, and one waits for most of the time.
    machines.silent, machines.waits["regular-0"] = True, 0.9
    after_looks(control, 10)
    doctor = ("doctor", f"--config={tmp_path / 'dovetail.yaml'}", f"--extender={serve}", f"--control={control}")
    found = [it["text"] for it in asked(control_plane, *doctor)["findings"] if it["check"] == "usage"]
    assert "1 node: whether regular pods wait for CPU is not known" in found
    assert not preempted()

    # 4. It is known: five pods of 0.17 are a tenth of the node. Then nobody waits any more, and the others stay. Where
    #    a sample is missed meanwhile, the first round is shorter, and another begins.
    before = on_idle_room(client)
    machines.silent = False
    workload.wait_until(lambda: preempted() >= 5, 60, "evictions")
    machines.waits["regular-0"] = 0.02
    after_looks(control, 8)
    count = preempted()
    after_looks(control, 12)
    assert 5 <= preempted() == count < 10
    victims = preempted_events(client, "pressed")
    assert len(victims) == count
    assert set(victims) <= set(before)
    assert {len(said) for said in victims.values()} == {1}
    names = {pod["metadata"]["name"] for pod in workload.pods(client)}
    assert {f"regular-{n}" for n in range(4)} <= names
    tell(f"{len(before)} pods on idle room, {len(victims)} evicted of a node of {CORES} cores")


def test_who_gets_next_to_nothing_of_a_full_cpu_is_moved_to_a_node_with_idle_room(
    control_plane, machines, addresses, tell
):
    client, (control, _) = control_plane.client(), addresses

    # 1. Eight pods of 0.17 cores run on idle room for longer than a ramp-up: what their class uses is known.
    create_job(client, "moved", 8)
    workload.wait_until(lambda: len(on_idle_room(client)) == 8, 60, "8 opportunistic pods")
    before = on_idle_room(client)
    after_looks(control, 45)

    # 2. A second node is full by what is reserved, and used to a quarter. On the first the regular pods use 7.6 of the
    #    8 cores, so with seven pods of 0.17 the CPU is full; nobody regular waits. One pod gets next to nothing.
    unlucky = min(before)
    workload.create_nodes(client, [builders.node(IDLE, cpu=2, memory="16Gi")])
    workload.create_pods(client, [builders.pod("regular-idle", cpu=2, memory="1Gi", spec={"nodeName": IDLE})])

    def use(pod):
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        regular = 0.25 if node == IDLE else 0.95
        part = 0.001 if name == unlucky else regular if name.startswith("regular") else 1.0
        return {dimension: part * amount for dimension, amount in declared(pod).items()}

    machines.begin(use)

    # 3. It goes, the Job makes another pod, and that starts on the second node. All others stay.
    workload.wait_until(lambda: preempted_events(client, "moved"), 90, "an eviction")
    workload.wait_until(lambda: len(on_idle_room(client).keys() - before.keys()) == 1, 60, "the pod elsewhere")
    after_looks(control, 15)
    now = on_idle_room(client)
    (later,) = now.keys() - before.keys()
    assert now[later]["spec"]["nodeName"] == IDLE
    assert before.keys() - now.keys() == {unlucky}
    assert preempted_events(client, "moved") == {
        unlucky: [f"it got next to no cpu on node {NODE} for a while, and may get more elsewhere"]
    }
    tell(f"1 of {len(before)} pods was moved, and runs on the other node")

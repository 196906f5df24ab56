"""Things end, hang and come back: the extender, the API server, the network. Nothing is lost or counted twice."""

import json
import random
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.request

import pytest
import yaml

from lab.controlplane import builders, ports, workload
from lab.controlplane.rest import request
from tests.chart.rbac import granted
from tests.integration.dovetail import (
    Dovetail,
    dovetail_on,
    equal_nodes,
    mixed_pods,
    over_allocated,
    scheduler_configuration,
)
from tests.integration.proxy import Proxy


@pytest.fixture
def client(control_plane):
    return control_plane.client()


def bound(client):
    return len(workload.bound_pods(client))


def test_killed_in_a_burst_with_ignorable_false_pods_wait_and_nothing_is_ever_over_allocated(control_plane, client):
    with dovetail_on(control_plane) as dovetail:
        workload.create_nodes(client, equal_nodes(builders, 30))
        pods = mixed_pods(builders, 250, random.Random(5))
        workload.create_pods(client, pods[:125])
        workload.wait_until(lambda: bound(client) > 60, 30, "some pods to be bound", every=0.01)
        control_plane.kill("dovetail")
        workload.create_pods(client, pods[125:])
        time.sleep(1)  # bindings under way at the kill land
        held = bound(client)
        time.sleep(2)
        assert bound(client) == held < 250, "without the extender nothing may be placed"
        assert not over_allocated(client)

        control_plane.start("dovetail")
        workload.wait_until(lambda: bound(client) == 250, 60, "all pods to be bound after the restart")
        assert not over_allocated(client)
        dovetail.wait_current()


def test_killed_in_a_burst_with_ignorable_true_scheduling_goes_on_by_requests_and_is_right_again_afterwards(
    control_plane, client, capsys
):
    with dovetail_on(control_plane, ignorable=True) as dovetail:
        workload.create_nodes(client, equal_nodes(builders, 30))
        pods = mixed_pods(builders, 260, random.Random(6))
        workload.create_pods(client, pods[:60])
        control_plane.kill("dovetail")
        workload.create_pods(client, pods[60:160])
        workload.wait_until(lambda: bound(client) == 160, 60, "scheduling to go on without the extender")
        before = over_allocated(client)
        assert not {key for key in before if key[1] in ("cpu", "memory")}, "kube-scheduler itself counts CPU and memory"

        control_plane.start("dovetail")
        workload.create_pods(client, pods[160:])
        settled(client)
        after = over_allocated(client)
        with capsys.disabled():
            print(
                f"\n  ignorable: true, killed: {len(before)} over-allocated without it, {len(after)} after its return"
            )
        assert {key: by for key, by in after.items() if by > before.get(key, 0)} == {}
        dovetail.wait_current()


def test_killed_and_restarted_within_one_burst_nothing_is_over_allocated_any_further(control_plane, client):
    with dovetail_on(control_plane) as dovetail:
        workload.create_nodes(client, equal_nodes(builders, 10))
        pods = [
            builders.pod(f"pod-{n}", cpu="10m", demand={"network-in": 250}, scheduler_name="dovetail")
            for n in range(40)
        ]
        workload.create_pods(client, pods)
        for _ in range(3):
            control_plane.kill("dovetail")
            control_plane.start("dovetail")
        workload.wait_until(lambda: bound(client) == 40, 90, "four pods on each of ten nodes")
        assert not over_allocated(client)
        dovetail.wait_current()


def test_when_the_api_server_restarts_the_caches_recover(control_plane, client):
    with dovetail_on(control_plane) as dovetail:
        workload.create_nodes(client, equal_nodes(builders, 10))
        workload.create_pods(client, mixed_pods(builders, 30, random.Random(7), prefix="before"))
        workload.wait_until(lambda: bound(client) == 30, 30, "the first pods")
        control_plane.kill("kube-apiserver")
        status, reply = dovetail.call("filter", {"Pod": {"metadata": {"uid": "u"}}, "NodeNames": ["node-000"]})
        assert (status, reply["NodeNames"]) == (200, ["node-000"]), "while it is gone, answers come from what was known"
        control_plane.start("kube-apiserver")
        workload.create_pods(client, mixed_pods(builders, 30, random.Random(8), prefix="after"))
        workload.wait_until(lambda: bound(client) == 60, 60, "the pods after the restart")
        dovetail.wait_current()
        assert not over_allocated(client)
        assert dovetail.metric("dovetail_watch_restarts_total", resource="pods") >= 1


@pytest.fixture
def behind_proxy(control_plane):
    """Give an extender that reaches the API server through a proxy; no scheduler asks it: what it sees is tested."""
    proxy = Proxy(control_plane.ports["kube-apiserver"])
    with granted(control_plane, "scheduler") as account:
        told = yaml.safe_load(control_plane.kubeconfig(account).read_text())
        told["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
        kubeconfig = control_plane.folder / "through-proxy.yaml"
        kubeconfig.write_text(yaml.safe_dump(told))
        (port,) = ports.pick(1)
        settings = control_plane.folder / "behind-proxy.yaml"
        settings.write_text(
            "apiVersion: dovetail.dev/v1alpha1\nkind: DovetailConfiguration\n"
            f"server: {{port: {port}}}\ncluster: {{staleSeconds: 1}}\n"
        )
        command = [sys.executable, "-m", "extender", "serve", "--config", settings, "--kubeconfig", kubeconfig]
        with (control_plane.folder / "logs" / "behind-proxy.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            dovetail = Dovetail(control_plane, f"http://127.0.0.1:{port}")
            workload.wait_until(lambda: ready(dovetail), 20, "the extender behind the proxy")
            yield dovetail, proxy, process
        finally:
            process.kill()
            process.wait()
            proxy.close()


def ready(dovetail):
    try:
        with urllib.request.urlopen(f"{dovetail.url}/readyz", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


def test_watches_that_end_in_the_middle_of_a_burst_miss_nothing_and_count_nothing_twice(
    client, behind_proxy, start_scheduler
):
    dovetail, proxy, _ = behind_proxy
    start_scheduler({"clientConnection": {"qps": 1000, "burst": 2000}})
    workload.create_nodes(client, equal_nodes(builders, 20))
    for burst in range(5):
        workload.create_pods(client, stock_pods(40, burst, f"b{burst}"))
        proxy.cut()
        request(client, "DELETE", f"/api/v1/namespaces/default/pods/b{burst}-0000", gracePeriodSeconds=0)
        proxy.cut()
    workload.wait_until(lambda: bound(client) == 5 * 39, 60, "195 pods to be bound")
    dovetail.wait_current()
    assert dovetail.metric("dovetail_watch_restarts_total", resource="pods") >= 5


def test_a_watch_that_gets_410_gone_lists_again(control_plane, client, behind_proxy, start_scheduler):
    dovetail, proxy, _ = behind_proxy
    start_scheduler({"clientConnection": {"qps": 1000, "burst": 2000}})
    workload.create_nodes(client, equal_nodes(builders, 5))
    workload.create_pods(client, stock_pods(20, 1, "seen"))
    workload.wait_until(lambda: bound(client) == 20, 30, "the pods that are seen")
    dovetail.wait_current()

    proxy.closed = True
    proxy.cut()
    workload.wait_until(lambda: not ready(dovetail), 10, "stale caches to be reported")
    for number in range(0, 20, 2):
        request(client, "DELETE", f"/api/v1/namespaces/default/pods/seen-{number:04d}", gracePeriodSeconds=0)
    workload.create_pods(client, stock_pods(20, 2, "missed"))
    workload.wait_until(lambda: bound(client) == 30, 30, "the pods that are missed")
    compact(control_plane, client)
    control_plane.restart("kube-apiserver")  # its watch cache starts empty: what was missed is gone for good
    proxy.closed = False

    dovetail.wait_current(30)
    assert dovetail.metric("dovetail_watch_restarts_total", resource="pods", cause="expired") >= 1
    workload.wait_until(lambda: ready(dovetail), 20, "both watches to be back")


def stock_pods(count, seed, prefix):
    return mixed_pods(builders, count, random.Random(seed), prefix=prefix, scheduler_name="default-scheduler")


def compact(control_plane, client):
    """Make etcd forget all history up to now."""
    newest = request(client, "GET", "/api/v1/pods", limit=1)["metadata"]["resourceVersion"]
    body = json.dumps({"revision": newest, "physical": True}).encode()
    call = urllib.request.Request(f"https://127.0.0.1:{control_plane.ports['etcd']}/v3/kv/compaction", body)
    folder = control_plane.folder / "storage-certificates"
    trusting = ssl.create_default_context(cafile=folder / "ca.crt")
    trusting.load_cert_chain(folder / "server.crt", folder / "server.key")
    with urllib.request.urlopen(call, timeout=10, context=trusting) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("grace", [{"gracePeriodSeconds": 0}, {}], ids=["at once", "gracefully"])
@pytest.mark.parametrize("asks", [{"cpu": 2}, {"cpu": "10m", "demand": {"network-in": 800}}], ids=["cpu", "network"])
def test_room_that_kube_scheduler_hears_of_first_goes_to_the_pod_that_waits_for_it(
    client, behind_proxy, start_scheduler, asks, grace
):
    # The extender hears of everything 40 ms after kube-scheduler. Refused by what it knows, the pod would sleep on.
    dovetail, proxy, _ = behind_proxy
    start_scheduler(scheduler_configuration(dovetail.url), name="ahead")
    workload.create_nodes(client, equal_nodes(builders, 1, cpu=2))
    workload.create_pods(client, [builders.pod("first", scheduler_name="dovetail", **asks)])
    workload.wait_until(lambda: bound(client) == 1, 15, "the first pod")
    workload.create_pods(client, [builders.pod("second", scheduler_name="dovetail", **asks)])
    time.sleep(1)
    assert bound(client) == 1
    proxy.lag_seconds = 0.04
    request(client, "DELETE", "/api/v1/namespaces/default/pods/first", **grace)
    workload.wait_until(lambda: "second" in workload.bound_pods(client), 10, "the room to be used")


@pytest.mark.usefixtures("priorities")
def test_a_preemptor_uses_room_that_kube_scheduler_hears_of_first(client, behind_proxy, start_scheduler):
    # Full by CPU, and by the network of a pod that may not be evicted. Once that one ends, evicting the other
    # helps; the extender hears of the end 40 ms after kube-scheduler. Refused then, the pod would sleep on.
    dovetail, proxy, _ = behind_proxy
    start_scheduler(scheduler_configuration(dovetail.url), name="ahead")
    workload.create_nodes(client, equal_nodes(builders, 1, cpu=2))
    high = {"scheduler_name": "dovetail", "spec": {"priorityClassName": "high"}}
    network = {"network-in": 800}
    for pod in (
        builders.pod("ends", cpu="10m", demand=network, **high),
        builders.pod("low", cpu="1900m", scheduler_name="dovetail"),
    ):
        workload.create_pods(client, [pod])
    workload.wait_until(lambda: bound(client) == 2, 15, "both pods")
    workload.create_pods(client, [builders.pod("preemptor", cpu=1, demand=network, **high)])
    time.sleep(1)
    assert bound(client) == 2
    proxy.lag_seconds = 0.04
    request(client, "DELETE", "/api/v1/namespaces/default/pods/ends", gracePeriodSeconds=0)
    workload.wait_until(lambda: workload.bound_pods(client).keys() == {"preemptor"}, 10, "the room to be used")


def test_sigterm_answers_what_was_asked_and_ends_within_seconds(behind_proxy, client):
    dovetail, _, process = behind_proxy
    workload.create_nodes(client, equal_nodes(builders, 1))
    workload.wait_until(lambda: dovetail.metric("dovetail_nodes") == 1, 10, "the node to be seen")
    answers = []

    def ask(uid):
        demand = {"dovetail.dev/demand": '{"network-in": 800}'}
        asked = {"Pod": {"metadata": {"uid": uid, "annotations": demand}}, "NodeNames": ["node-000"]}
        answers.append(dovetail.call("filter", asked)[0])

    ask("in flight")
    waiting = threading.Thread(target=ask, args=("waits for it",))
    waiting.start()
    time.sleep(0.15)
    process.send_signal(signal.SIGTERM)
    assert process.wait(5) == 0
    waiting.join(5)
    assert answers == [200, 200]


def test_what_is_malformed_is_refused_with_its_reason_and_harms_nobody(control_plane, client):
    settings = {"server": {"maxBodyBytes": 2**20}}
    with dovetail_on(control_plane, settings=settings) as dovetail:
        workload.create_nodes(client, equal_nodes(builders, 2))
        good = {"Pod": {"metadata": {"name": "p", "uid": "u"}}, "Nodes": None, "NodeNames": ["node-000", "nobody"]}
        text = json.dumps(good).encode()
        deep = b'{"Pod":{"spec":' + b'{"containers":[' * 50_000
        for body, status, reason in (
            (b"", 400, "truncated"),
            (b"not JSON", 400, "malformed"),
            (text[:-20], 400, "truncated"),
            (b'{"Pod": 3, "NodeNames": []}', 400, "Expected `object | null`, got `int`"),
            (b'{"NodeNames": ["node-000"]}', 400, "Pod is missing"),
            (b'{"Pod": {}}', 400, "one of them"),
            (deep, 400, "ExtenderArgs"),
            (b'{"Pod": {}, "NodeNames": ["a", "a"]}', 400, "more than once: a"),
        ):
            for verb in ("filter", "prioritize"):
                answered, reply = dovetail.call(verb, body)
                assert answered == status, (verb, body[:40])
                assert reason in reply["Error"], reply
        for body in (b"", b"not JSON", text[:-20], b'{"Pod": {}}', deep):
            assert dovetail.call("preempt", body)[0] == 400
        assert dovetail.call("filter", text + b" " * 2**20)[0] == 413

        status, reply = dovetail.call("filter", good)
        assert (status, reply["NodeNames"]) == (200, ["node-000"])
        assert reply["FailedAndUnresolvableNodes"] == {"nobody": "node unknown to Dovetail"}
        assert dovetail.call("prioritize", good)[1] == [
            {"Host": "node-000", "Score": 10},
            {"Host": "nobody", "Score": 0},
        ]
        workload.create_pods(client, [builders.pod("after", cpu=1, scheduler_name="dovetail")])
        workload.wait_until(lambda: bound(client) == 1, 15, "a pod to be placed after all that")


@pytest.mark.parametrize("own_nodes", [False, True], ids=["shared nodes", "own nodes by taint"])
def test_two_schedulers_on_the_same_nodes_race_and_the_losers_pod_fails_at_the_kubelet(
    control_plane, client, start_scheduler, capsys, own_nodes
):
    # Nodes of 2 cores, pods of 1.5: each node is for one pod. Two pods want the same node at the same time; each
    # scheduler sees the other's binding late.
    taint = {"key": "dovetail.dev/only", "value": "true", "effect": "NoSchedule"}
    with dovetail_on(control_plane) as dovetail:
        start_scheduler({"clientConnection": {"qps": 1000, "burst": 2000}})
        nodes, pods = [], []
        for n in range(20):
            ours, theirs = f"node-{n}", f"other-{n}" if own_nodes else f"node-{n}"
            nodes.append(builders.node(ours, cpu=2, memory="8Gi", taints=[taint] if own_nodes else []))
            if own_nodes:
                nodes.append(builders.node(theirs, cpu=2, memory="8Gi"))
            wants = {"nodeSelector": {"kubernetes.io/hostname": ours}, "tolerations": [taint] if own_nodes else []}
            pods.append(builders.pod(f"ours-{n}", cpu="1500m", scheduler_name="dovetail", spec=wants))
            wants = {"nodeSelector": {"kubernetes.io/hostname": theirs}}
            pods.append(builders.pod(f"stock-{n}", cpu="1500m", spec=wants))
        workload.create_nodes(client, nodes)
        workload.create_pods(client, pods)
        settled(client)
        losers = fail_as_a_kubelet_would(client)
        with capsys.disabled():
            how = "own nodes by taint" if own_nodes else "shared nodes"
            print(f"\n  two schedulers, 20 pairs of pods at once, {how}: {len(losers)} pods failed (OutOfcpu)")
        assert not own_nodes or not losers
        assert not over_allocated(client), "a failed pod holds nothing"
        dovetail.wait_current()


def fail_as_a_kubelet_would(client):
    """Fail the pods that do not fit their node any more, as its kubelet would; return their names.

    The pods are equal, so it does not matter which of two goes.
    """
    free, losers = {it["metadata"]["name"]: 2000 for it in workload.nodes(client)}, []
    for name, node in workload.bound_pods(client).items():
        free[node] -= 1500
        if free[node] < 0:
            status = {"status": {"phase": "Failed", "reason": "OutOfcpu", "message": "Pod was rejected: out of cpu"}}
            path = f"/api/v1/namespaces/default/pods/{name}/status"
            request(client, "PATCH", path, status, content="application/merge-patch+json")
            losers.append(name)
    return losers


def settled(client, seconds=3):
    """Return once no pod has been bound for some seconds."""
    last, since = bound(client), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.1)
        if bound(client) != last:
            last, since = bound(client), time.monotonic()

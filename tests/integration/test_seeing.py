"""`dovetail explain pod`, `queues` and `doctor` on a busy cluster, for somebody with a kubeconfig; and events."""

import io
import json
import sys
import time
import urllib.request
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest
import yaml

from charts.render import NAMESPACE
from extender.cli import main
from lab.controlplane import builders, workload
from lab.controlplane.rest import request
from lab.controlplane.running import ADMIN
from tests.integration.dovetail import control_on, dovetail_on, equal_nodes, scheduler_configuration

HOLD = "dovetail.dev/hold"
QUEUES = [
    {"name": "lab", "weight": 1},
    {"name": "training", "weight": 3, "parent": "lab"},
    {"name": "notebooks", "weight": 1, "parent": "lab"},
    {"name": "reports", "weight": 1, "minimumShare": 0.25, "policy": "fifo"},
]
LABELS = {"app.kubernetes.io/name": "dovetail"}


@pytest.fixture
def client(control_plane):
    return control_plane.client()


def held(name, queue, *, job=None, gates=(HOLD,), cpu=2, **more):
    labels = {"dovetail.dev/queue": queue, "dovetail.dev/job": job or queue}
    spec = {"schedulingGates": [{"name": gate} for gate in gates], **more.pop("spec", {})}
    told = {"cpu": cpu, "memory": "2Gi", "scheduler_name": "dovetail", **more}
    return builders.pod(name, **told, labels=labels, spec=spec)


def dovetail(control_plane, *words, user=ADMIN, status=0):
    """Run a command as somebody outside of the cluster would; return what it printed (stderr where it fails).

    It runs in this process: twenty starts of Python would be most of these tests' time.
    """
    kubeconfig = control_plane.admin if user == ADMIN else control_plane.kubeconfig(user)
    output, errors = io.StringIO(), io.StringIO()
    command = ["dovetail", *words, f"--kubeconfig={kubeconfig}"]
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(output), redirect_stderr(errors):
        patched.setattr(sys, "argv", command)
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    assert code == status, output.getvalue() + errors.getvalue()
    if "--json" not in words:
        assert all(len(line) <= 100 for line in output.getvalue().splitlines()), output.getvalue()
    return output.getvalue() or errors.getvalue()


def asked(control_plane, *words, **options):
    return json.loads(dovetail(control_plane, *words, "--json", **options))


def events(client, name):
    uid = workload.pod(client, name)["metadata"]["uid"]  # events of earlier tests' pods of that name are there still
    found = request(client, "GET", "/api/v1/namespaces/default/events", fieldSelector=f"involvedObject.uid={uid}")
    return [(it["reason"], it["message"]) for it in found["items"] if it["source"].get("component") == "dovetail"]


def metric(url, name, **labels):
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    return sum(
        float(it.rsplit(" ", 1)[1]) for it in lines if it.startswith(f"{name}{{") and all(w in it for w in wanted)
    )


@contextmanager
def busy(control_plane, client, lease=None):
    """Run all of Dovetail on two nodes of 16 cores with more held pods than there is room for; give both addresses.

    24 pods of each of three queues, 2 cores each; 16 of all fit. Fair shares: lab has half, of which training gets
    three quarters; reports has the other half.
    """
    told = {"queues": QUEUES, "control": {"heldEventSeconds": 2}, "policy": {"fairness": 0.9}}
    with dovetail_on(control_plane) as extender:
        maps = {
            "dovetail": {"dovetail.yaml": yaml.safe_dump({
                "apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration", **told,
            })},
            "dovetail-kube-scheduler": {"kube-scheduler.yaml": yaml.safe_dump(scheduler_configuration(extender.url))},
        }  # fmt: skip
        workload.create_nodes(client, equal_nodes(builders, 2))
        queues = ("training", "notebooks", "reports")
        workload.create_pods(client, [held(f"{queue}-{n:02}", queue) for n in range(24) for queue in queues])
        with control_on(control_plane, lease=lease, **told) as url, configured(client, maps):
            workload.wait_until(lambda: len(workload.bound_pods(client)) == 16, 30, "the nodes to be full")
            yield extender.url, url


@contextmanager
def configured(client, maps):
    """Have these ConfigMaps, as the chart would."""
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    for name, content in maps.items():
        request(client, "POST", path, {"metadata": {"name": name, "labels": LABELS}, "data": content})
    try:
        yield
    finally:
        for name in maps:
            request(client, "DELETE", f"{path}/{name}")


def some_pod(client, queue, *, bound):
    nodes = workload.bound_pods(client)
    found = sorted(it["metadata"]["name"] for it in workload.pods(client) if it["metadata"]["name"].startswith(queue))
    return next(name for name in found if (name in nodes) == bound)


def test_who_asks_learns_why_pods_wait_where_queues_stand_and_what_is_wrong(control_plane, client):
    with busy(control_plane, client) as (extender, control):
        waits, went = some_pod(client, "training", bound=False), some_pod(client, "reports", bound=True)

        text = dovetail(control_plane, "explain", "pod", waits, "-n", "default")
        print(text)
        found = asked(control_plane, "explain", "pod", f"default/{waits}")
        assert (found["state"], found["queue"], found["fair_share"]) == ("held", "training", 0.375)
        assert found["reason"] == {"kind": "no-room", "text": "no node has enough free: mostly cpu is short"}
        assert found["settings"] == f"ConfigMap {NAMESPACE}/dovetail"
        assert found["unread"] == {}
        assert (found["position"]["placed"], found["position"]["reached"]) == (False, True)
        assert [it["short"] for it in found["nodes"]] == [{"cpu": 2000.0}] * 2
        assert found["change"] == ["2 cores more free on any of 2 nodes"]
        assert "no node has enough free: mostly cpu is short (no-room)" in text
        assert "training: share 37.5 %, fair share 37.5 %" in text

        text = dovetail(control_plane, "explain", "pod", f"default/{went}")
        print(text)
        found = asked(control_plane, "explain", "pod", f"default/{went}")
        assert (found["state"], found["ours"]) == ("bound", True)
        assert found["node"] == workload.bound_pods(client)[went]
        assert found["use"]["cpu"] == {"allocated": 16000.0, "offered": 16000.0}
        assert "where it went" in text

        print(dovetail(control_plane, "queues"))
        rows = {it["name"]: it for it in asked(control_plane, "queues")["queues"]}
        assert list(rows) == ["lab", "notebooks", "training", "reports"]
        # 16 places: reports half, training three quarters of the rest.
        assert {name: it["running"] for name, it in rows.items()} == {
            "lab": 8, "notebooks": 2, "training": 6, "reports": 8,
        }  # fmt: skip
        assert [rows[name]["held"] for name in ("lab", "training", "reports")] == [40, 18, 16]
        assert [rows[name]["fair"] for name in ("lab", "training", "reports")] == [0.5, 0.375, 0.5]

        print(dovetail(control_plane, "doctor", f"--extender={extender}", f"--control={control}"))
        levels = {
            it["check"]: it["level"]
            for it in asked(control_plane, "doctor", f"--extender={extender}", f"--control={control}")["findings"]
        }
        assert set(levels.values()) == {"ok"}, levels

        workload.wait_until(lambda: metric(control, "dovetail_held_pods", reason="no-room") == 56, 10, "the metric")
        assert metric(control, "dovetail_queue_fair_share", queue="training") == 0.375
        assert metric(control, "dovetail_queue_share", queue="training") == 0.375
        assert metric(control, "dovetail_oldest_wait_seconds", queue="training") > 0


def test_a_held_pod_gets_one_event_and_one_more_when_it_is_released(control_plane, client):
    with busy(control_plane, client):
        waits, went = some_pod(client, "training", bound=False), some_pod(client, "training", bound=True)
        workload.wait_until(lambda: events(client, waits), 30, "the event")
        time.sleep(2)
        assert events(client, waits) == [("Held", "no node has enough free: mostly cpu is short")]
        assert events(client, went) == []
        for name in list(workload.bound_pods(client)):
            request(client, "DELETE", f"/api/v1/namespaces/default/pods/{name}", gracePeriodSeconds=0)
        workload.wait_until(lambda: waits in workload.bound_pods(client), 20, "its turn")
        workload.wait_until(lambda: len(events(client, waits)) == 2, 20, "the second event")
        print(*events(client, waits), sep="\n")
        (message,) = (message for reason, message in events(client, waits) if reason == "Released")
        # Not the node that it is on: kube-scheduler takes another while it has not seen who has left the promised one.
        promised = workload.pod(client, waits)["metadata"]["annotations"]["dovetail.dev/nominated"]
        assert message.startswith(f"released to {promised}, after ")


def test_doctor_finds_what_was_broken_on_purpose(control_plane, client):
    lease = {"seconds": 3, "renewSeconds": 2, "retrySeconds": 0.5}
    with busy(control_plane, client, lease) as (extender, control):
        job = {
            "metadata": {"name": "nightly"},
            "spec": {
                "activeDeadlineSeconds": 600,
                "template": {
                    "metadata": {"labels": {"dovetail.dev/queue": "reports"}},
                    "spec": held("x", "reports")["spec"],
                },
            },
        }
        request(client, "POST", "/apis/batch/v1/namespaces/default/jobs", job)
        workload.create_nodes(client, [builders.node("bare", cpu=1)])
        typo = builders.pod("typo", cpu=1, scheduler_name="dovetial")
        broken = held("broken", "training")
        broken["metadata"]["annotations"]["dovetail.dev/demand"] = "a lot"
        workload.create_pods(client, [typo, broken])
        workload.wait_until(lambda: len(workload.pods(client)) >= 75, 20, "the Job's pod to be there")
        print(dovetail(control_plane, "doctor", f"--extender={extender}", f"--control={control}"))
        found = asked(control_plane, "doctor", f"--extender={extender}", f"--control={control}")["findings"]
        said = {it["check"]: it["text"] for it in found if it["level"] == "warning"}
        assert said.keys() == {"schedulers", "deadlines", "capacities", "annotations"}
        assert "schedulerName dovetial" in said["schedulers"]
        assert said["deadlines"] == "activeDeadlineSeconds (10 min) of Job default/nightly runs; held: 1 pod"
        assert said["capacities"] == "1 of 3 nodes declare no disk or network: bare"
        assert said["annotations"].startswith("pod default/broken: annotation dovetail.dev/demand")

        control_plane.kill("dovetail-control")
        time.sleep(lease["seconds"] + 1)
        found = asked(control_plane, "doctor", f"--extender={extender}", f"--control={control}", status=1)["findings"]
        assert [it["check"] for it in found if it["level"] == "problem"] == ["leader", "shares"]

        for name in list(workload.bound_pods(client))[:4]:
            request(client, "DELETE", f"/api/v1/namespaces/default/pods/{name}", gracePeriodSeconds=0)
        print(dovetail(control_plane, "doctor", f"--extender={extender}", f"--control={control}", status=1))
        found = asked(control_plane, "doctor", f"--extender={extender}", f"--control={control}", status=1)["findings"]
        said = {it["check"]: it["text"] for it in found if it["level"] == "problem"}
        assert said.keys() == {"leader", "gates", "shares"}
        assert said["gates"].startswith("4 pods would fit in their turn, and none was released in")
        due = [some_pod(client, queue, bound=False) for queue in ("training", "reports", "notebooks")]
        told = {it: asked(control_plane, "explain", "pod", f"default/{it}") for it in due}
        (name, found) = next((name, found) for name, found in told.items() if found["reason"]["kind"] == "pace")
        print(dovetail(control_plane, "explain", "pod", f"default/{name}"))
        assert found["position"]["placed"]
        assert found["node"] in ("node-000", "node-001")
        assert found["nodes"][0]["fits"]
        assert found["nodes"][0]["score"] == pytest.approx(found["nodes"][0]["alignment"] - found["nodes"][0]["work"])
        control_plane.start_stopped()


def test_who_may_read_little_is_told_what(control_plane, client):
    with busy(control_plane, client) as (extender, _):
        user = "nobody-in-particular"
        assert "pod default/x cannot be read: you may not (403)" in dovetail(
            control_plane, "explain", "pod", "default/x", user=user, status=1
        )
        assert "nodes and pods of all namespaces must be readable" in dovetail(
            control_plane, "queues", user=user, status=1
        )
        assert "through the API server: you may not (403); try --metrics" in dovetail(
            control_plane, "locality", "--target=0.9", "--from-cluster", user=user, status=1
        )
        assert "no pod of dovetail control runs" in dovetail(
            control_plane, "locality", "--target=0.9", "--from-cluster", status=1
        )
        doctor = ("doctor", f"--extender={extender}")
        assert dovetail(control_plane, *doctor, user=user, status=1).startswith(
            "INCOMPLETE, as this could not be read: "
        )
        found = asked(control_plane, *doctor, user=user, status=1)["findings"]
        unread = {it["text"].split(" ")[0] for it in found if it["check"] == "rights"}
        assert unread >= {"nodes", "pods", "jobs", "deployments", "replicasets", "leases", "configmaps"}
        assert {it["check"] for it in found if it["level"] == "ok"} == {"extender", "sample"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("default/nobody", "there is no pod default/nobody"),
        ("nobody", "there is no pod default/nobody"),
        ("a/b/c", "'a/b/c' is not the name of a pod"),
    ],
)
def test_a_pod_that_is_not_there_is_a_plain_error(control_plane, name, said):
    assert said in dovetail(control_plane, "explain", "pod", name, status=1)

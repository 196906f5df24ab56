"""Dovetail in a kind cluster, as kind-config.yaml and the chart install it: real kubelets, real images."""

import json
import os
import shutil
import subprocess
import time

import pytest
from kubernetes.config import new_client_from_config

from charts.render import CHART, NAMESPACE, ROOT, VALUES
from lab.controlplane import builders, pins
from lab.controlplane.building import build
from lab.controlplane.rest import MERGE, request

pytestmark = [pytest.mark.kind, pytest.mark.timeout(1800)]

IMAGE = "dovetail:0.1.0"
PODS = "/api/v1/namespaces/default/pods"


def what_is_missing():
    """Return why no kind cluster can be made here; None where one can."""
    for program in ("kind", "docker"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    asked = subprocess.run(["docker", "info"], capture_output=True, text=True, timeout=60, check=False)
    if asked.returncode:
        return f"docker info says: {(asked.stderr.strip() or asked.stdout.strip()).splitlines()[-1]}"
    return None


def run(*command, **more):
    subprocess.run([str(word) for word in command], check=True, cwd=ROOT, **more)


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory):
    """Create the cluster with the image in it; remove it at the end."""
    missing = what_is_missing()
    if missing:
        pytest.skip(f"kind and a container engine are needed: {missing}")
    path = tmp_path_factory.mktemp("kind") / "kubeconfig"
    name = f"dovetail-test-{os.getpid()}"
    try:
        config = ("--config", "kind-config.yaml", "--kubeconfig", path, "--wait", "5m")
        run("kind", "create", "cluster", "--name", name, *config)
        run("docker", "build", "--tag", IMAGE, ".")
        run("kind", "load", "docker-image", "--name", name, IMAGE)
        yield path
    finally:
        run("kind", "delete", "cluster", "--name", name, "--kubeconfig", path)


@pytest.fixture(scope="module")
def client(kubeconfig):
    return new_client_from_config(str(kubeconfig))


@pytest.fixture(scope="module")
def install(kubeconfig):
    helm = build.provide([pins.helm()], cache=build.default_cache(os.environ))["helm"].path

    def install(release, namespace, mode):
        place = ("--namespace", namespace, "--create-namespace", "--kubeconfig", kubeconfig)
        command = ("install", release, CHART, *place, "--values", "-", "--wait", "--timeout", "5m")
        run(helm, *command, input=json.dumps(VALUES[mode]), text=True)

    return install


def start(client, name, **more):
    pod = builders.pod(name, cpu="10m", memory="16Mi", **more)
    pod["spec"]["containers"][0]["image"] = "registry.k8s.io/pause:3.10"
    request(client, "POST", PODS, pod)


def wait_for(client, name, accepted):
    """Return the pod as soon as `accepted` takes it, or as it is after a minute."""
    limit = time.monotonic() + 60
    while True:
        pod = request(client, "GET", f"{PODS}/{name}")
        if accepted(pod) or time.monotonic() > limit:
            return pod
        time.sleep(0.5)


def node_of(client, name):
    return wait_for(client, name, lambda pod: "nodeName" in pod["spec"])["spec"].get("nodeName")


def test_the_clusters_own_scheduler_places_pods_by_network_through_dovetail(client, install):
    install("dovetail", NAMESPACE, "existing")
    workers = [
        it["metadata"]["name"]
        for it in request(client, "GET", "/api/v1/nodes")["items"]
        if "node-role.kubernetes.io/control-plane" not in it["metadata"]["labels"]
    ]
    capacity = {"metadata": {"annotations": {"dovetail.dev/capacity": '{"network-in": "100M"}'}}}
    for worker in workers:
        request(client, "PATCH", f"/api/v1/nodes/{worker}", capacity, content=MERGE)

    # 60M each: one for each of the two workers of 100M, and no room for a third.
    for number in range(2):
        start(client, f"busy-{number}", demand={"network-in": "60M"})
    placed = {node_of(client, f"busy-{number}") for number in range(2)}
    start(client, "too-many", demand={"network-in": "60M"})

    def refused(pod):
        return any("insufficient network-in" in it.get("message", "") for it in pod["status"].get("conditions", []))

    assert placed == set(workers)
    third = wait_for(client, "too-many", refused)
    assert refused(third), third["status"]
    assert "nodeName" not in third["spec"]


def test_a_second_scheduler_places_the_pods_that_ask_for_it(client, install):
    install("dovetail-second", "dovetail-second", "scheduler")

    start(client, "asks", scheduler_name="dovetail")

    assert node_of(client, "asks")
    events = request(client, "GET", "/apis/events.k8s.io/v1/namespaces/default/events")["items"]
    by = {
        it["reportingController"] for it in events if it["regarding"]["name"] == "asks" and it["reason"] == "Scheduled"
    }
    assert by == {"dovetail"}

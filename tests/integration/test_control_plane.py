"""The control plane itself, before anything of ours runs on it."""

import datetime
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.building import build
from lab.controlplane.rest import STRATEGIC, RequestRefused, request
from lab.controlplane.running import ControlPlane
from lab.errors import ControlPlaneError


def wait_for_phase(client, name, phase, seconds=15):
    workload.wait_until(
        lambda: workload.pod(client, name)["status"]["phase"] == phase, seconds, f"pod {name} to be {phase}", every=0.02
    )
    return workload.pod(client, name)


def moment(text):
    return datetime.datetime.fromisoformat(text).timestamp()


@pytest.fixture
def client(control_plane):
    return control_plane.client()


@pytest.fixture
def one_node(control_plane, start_scheduler):
    start_scheduler()
    workload.create_nodes(control_plane.client(), [builders.node("node", cpu=4, memory="8Gi")])


@pytest.mark.skipif(build.ASSETS in os.environ, reason=f"{build.ASSETS} says which version runs")
def test_it_runs_the_minor_that_was_asked_for(control_plane, pytestconfig):
    assert control_plane.version().startswith(f"v{pytestconfig.getoption('--kubernetes')}.")


def test_a_user_without_a_binding_may_do_nothing(control_plane):
    with pytest.raises(RequestRefused, match="cannot list resource") as refused:
        workload.nodes(control_plane.client("nobody-in-particular"))
    assert refused.value.status == 403


def test_a_kubeconfig_carries_the_user_that_a_role_was_bound_to(control_plane):
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "sees-nodes"}}
    role["rules"] = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    binding = {**role, "kind": "ClusterRoleBinding"}
    del binding["rules"]
    binding["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "sees-nodes"}
    binding["subjects"] = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "looker"}]
    control_plane.apply([role, binding])
    looker = control_plane.client("looker")
    workload.wait_until(lambda: may_list_nodes(looker), 5, "the binding to be seen")
    with pytest.raises(RequestRefused, match="pods is forbidden"):
        workload.pods(looker)


def may_list_nodes(client):
    try:
        return workload.nodes(client) == []
    except RequestRefused:
        return False


def test_apply_with_dry_run_validates_and_keeps_nothing(control_plane, client):
    control_plane.apply([builders.pod("checked", cpu=1)], dryRun="All")
    assert workload.pods(client) == []
    with pytest.raises(RequestRefused, match="must be greater than or equal to 0"):
        control_plane.apply([builders.pod("wrong", cpu=-1)], dryRun="All")


def test_apply_names_a_kind_that_the_server_does_not_know(control_plane):
    with pytest.raises(ControlPlaneError, match=r"no kind 'Pot' in v1; it has .*Pod"):
        control_plane.apply([{"apiVersion": "v1", "kind": "Pot", "metadata": {"name": "x"}}])


def test_new_nodes_take_pods_within_seconds(client, tell):
    begun = time.monotonic()
    workload.create_nodes(client, [builders.node(f"node-{number}") for number in range(20)], ready=20)
    tell(f"20 nodes created and untainted in {time.monotonic() - begun:.2f} s")
    assert all(not node["spec"].get("taints") for node in workload.nodes(client))


@pytest.mark.usefixtures("one_node")
def test_a_bound_pod_runs_and_publishes_its_containers_resources(client):
    sidecar = builders.container("side", cpu="100m", restart_policy="Always")
    spec = {"initContainers": [builders.container("first", cpu=2), sidecar]}
    workload.create_pods(client, [builders.pod("pod", cpu="1500m", memory="1Gi", spec=spec)])
    status = wait_for_phase(client, "pod", "Running")["status"]
    (main,) = status["containerStatuses"]
    assert main["allocatedResources"] == {"cpu": "1500m", "memory": "1Gi"}
    assert main["resources"]["requests"] == {"cpu": "1500m", "memory": "1Gi"}
    first, side = status["initContainerStatuses"]
    assert first["state"]["terminated"]["reason"] == "Completed"
    assert side["allocatedResources"] == {"cpu": "100m"}
    assert "running" in side["state"]


@pytest.mark.usefixtures("one_node")
def test_a_running_pod_follows_a_resize(client):
    workload.create_pods(client, [builders.pod("pod", cpu=1, memory="1Gi")])
    wait_for_phase(client, "pod", "Running")
    workload.resize(client, "pod", cpu="2500m")
    workload.wait_until(lambda: allocated(client, "pod") == {"cpu": "2500m", "memory": "1Gi"}, 5, "the resize")


def allocated(client, name):
    return workload.pod(client, name)["status"]["containerStatuses"][0]["allocatedResources"]


@pytest.mark.usefixtures("one_node")
def test_a_pod_ends_after_the_duration_that_it_declares_even_if_resized_meanwhile(client, tell):
    workload.create_pods(client, [builders.pod("pod", cpu=1, duration=2.5)])
    wait_for_phase(client, "pod", "Running")
    begun = time.monotonic()
    workload.resize(client, "pod", cpu=2)
    ended = wait_for_phase(client, "pod", "Succeeded")
    lasted = time.monotonic() - begun
    tell(f"declared 2.5 s, lasted {lasted:.2f} s as seen from outside")
    assert 1.5 < lasted < 4
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


@pytest.mark.usefixtures("one_node")
def test_durations_are_kept_to_a_fraction_of_a_second(client):
    workload.create_pods(client, [builders.pod(f"pod-{number}", duration=1.25) for number in range(10)])
    for number in range(10):
        wait_for_phase(client, f"pod-{number}", "Succeeded")
    for pod in workload.pods(client):
        ends = next(it for it in pod["status"]["conditions"] if it["type"] == "dovetail.dev/ends")
        begun = moment(pod["status"]["startTime"])  # whole seconds
        assert 1.25 <= moment(ends["message"]) - begun <= 2.3


@pytest.mark.usefixtures("one_node")
def test_a_pod_with_a_broken_duration_runs_and_does_not_end(client):
    workload.create_pods(client, [builders.pod("pod", annotations={builders.DURATION: "soon"})])
    wait_for_phase(client, "pod", "Running")
    time.sleep(1)
    assert workload.pod(client, "pod")["status"]["phase"] == "Running"


@pytest.mark.usefixtures("one_node")
def test_a_deleted_pod_goes_away_after_its_grace(client):
    workload.create_pods(client, [builders.pod("pod", spec={"terminationGracePeriodSeconds": 30})])
    wait_for_phase(client, "pod", "Running")
    request(client, "DELETE", "/api/v1/namespaces/default/pods/pod")
    workload.wait_until(lambda: workload.pods(client) == [], 5, "the pod to go")


@pytest.mark.usefixtures("one_node")
def test_a_pod_of_a_job_completes_the_job(control_plane, client):
    template = builders.pod("unused", cpu="100m", duration=0.5)
    template["metadata"] = {"annotations": template["metadata"]["annotations"]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}}
    job["spec"] = {"completions": 2, "parallelism": 2, "template": {k: template[k] for k in ("metadata", "spec")}}
    control_plane.apply([job])
    path = "/apis/batch/v1/namespaces/default/jobs/job"
    workload.wait_until(lambda: request(client, "GET", path)["status"].get("succeeded") == 2, 20, "the job")


def test_a_pod_of_a_job_that_is_deleted_before_it_starts_goes_away(control_plane, client):
    # With such a policy the Job keeps the pod until it has ended, as a kubelet says of it though it never began.
    workload.create_nodes(client, [builders.node("a")])
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    pod = builders.pod("ignored", spec={"nodeName": "a"})
    job = {"podFailurePolicy": {"rules": [ignored]}, "template": {"spec": pod["spec"]}}
    control_plane.stop("kwok")
    request(client, "POST", "/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "job"}, "spec": job})
    (created,) = workload.wait_until(lambda: workload.pods(client), 20, "the Job's pod")
    name = created["metadata"]["name"]
    request(client, "DELETE", f"/api/v1/namespaces/default/pods/{name}")
    control_plane.start("kwok")
    workload.wait_until(lambda: name not in workload.phases(client), 20, "the deleted pod to go")


def test_several_schedulers_each_take_their_own_pods(control_plane, client, start_scheduler):
    for name in ("one", "two"):
        start_scheduler({"profiles": [{"schedulerName": name}]}, name=f"scheduler-{name}")
    workload.create_nodes(client, [builders.node("node")])
    workload.create_pods(client, [builders.pod(name, scheduler_name=name) for name in ("one", "two", "nobodys")])
    workload.wait_until(lambda: set(workload.bound_pods(client)) == {"one", "two"}, 15, "two pods to be bound")
    time.sleep(0.5)
    assert set(workload.bound_pods(client)) == {"one", "two"}
    assert {"scheduler-one", "scheduler-two"} <= set(control_plane.pids)


def test_a_restarted_api_server_keeps_address_and_data(control_plane, client, tell):
    workload.create_nodes(client, [builders.node("node")])
    address, before = control_plane.url, control_plane.pids["kube-apiserver"]
    begun = time.monotonic()
    control_plane.restart("kube-apiserver")
    tell(f"API server restarted in {time.monotonic() - begun:.2f} s")
    assert control_plane.url == address
    assert control_plane.pids["kube-apiserver"] != before
    assert [node["metadata"]["name"] for node in workload.nodes(client)] == ["node"]


@pytest.mark.usefixtures("one_node")
def test_a_killed_api_server_comes_back_and_pods_are_bound_again(control_plane, client):
    control_plane.kill("kube-apiserver")
    assert "kube-apiserver" not in control_plane.pids
    control_plane.start("kube-apiserver")
    workload.create_pods(client, [builders.pod("pod", cpu=1)])
    wait_for_phase(client, "pod", "Running", 40)


def test_a_patch_of_status_is_seen(client):
    workload.create_nodes(client, [builders.node("node")])
    patch = {"status": {"capacity": {"example.com/thing": "3"}, "allocatable": {"example.com/thing": "3"}}}
    request(client, "PATCH", "/api/v1/nodes/node/status", patch, content=STRATEGIC)
    (node,) = workload.nodes(client)
    assert node["status"]["allocatable"]["example.com/thing"] == "3"


def test_a_component_that_cannot_start_is_named_with_the_end_of_its_log(programs):
    flags = {"kube-apiserver": ["--no-such-flag"]}
    failed = ControlPlane(programs, flags=flags)
    with pytest.raises(ControlPlaneError, match=r"(?s)kube-apiserver ended.*kube-apiserver\.log.*no-such-flag"):
        failed.__enter__()
    assert (failed.folder / "logs" / "kube-apiserver.log").exists()
    assert failed.pids == {}
    shutil.rmtree(failed.folder)


def test_stopping_leaves_no_process_and_no_folder(programs):
    with ControlPlane(programs) as running:
        running.add_scheduler()
        pids = running.pids
        assert set(pids) == {"etcd", "kube-apiserver", "kube-controller-manager", "kwok", "kube-scheduler"}
    assert not any(is_running(pid) for pid in pids.values())
    assert not running.folder.exists()


def test_nothing_outlives_a_killed_owner(programs, tmp_path):
    script = tmp_path / "owner.py"
    script.write_text(OWNER)
    told = [f"{name}={path}" for name, path in programs.items()]
    with subprocess.Popen([sys.executable, script, *told], stdout=subprocess.PIPE, text=True) as owner:
        folder, *pids = owner.stdout.readline().split()
        assert all(is_running(int(pid)) for pid in pids)
        owner.send_signal(signal.SIGKILL)
    workload.wait_until(lambda: not any(is_running(int(pid)) for pid in pids), 5, "the components to end")
    assert len(pids) == 4
    assert Path(folder).is_dir()  # the logs stay
    shutil.rmtree(folder)


OWNER = """
import pathlib, sys, time
from lab.controlplane.running import ControlPlane
programs = {name: pathlib.Path(path) for name, _, path in (it.partition("=") for it in sys.argv[1:])}
with ControlPlane(programs) as running:
    print(running.folder, *running.pids.values(), flush=True)
    time.sleep(60)
"""


def is_running(pid):
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False

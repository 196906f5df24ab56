"""Each file in `examples/` on a real API server: accepted as it stands, and its pods are what the file says.

Custom resources are checked against the definitions of their pinned modules. Their pods are made as the operator would
make them (`operators.py`).
"""

import json
import time
from collections import Counter
from contextlib import ExitStack

import msgspec
import pytest
import yaml

from charts.render import ROOT
from extender.adapters.kube.decoding import pod_from
from extender.adapters.kube.objects import PodObject
from lab.controlplane import builders, workload
from tests.integration import crds, operators
from tests.integration.dovetail import IO, control_on, dovetail_on
from tests.integration.gating import HOLD
from tests.integration.test_seeing import metric

MIB, GIB = 2**20, 2**30
EXAMPLES = ROOT / "examples"
SETTINGS = yaml.safe_load((EXAMPLES / "queues.yaml").read_text())
RATES = dict.fromkeys(IO, "1G")

pytestmark = pytest.mark.usefixtures("control")


def documents(file):
    return list(yaml.safe_load_all((EXAMPLES / file).read_text()))


def nodes(count, prefix="node", cpu=16):
    """Return nodes that declare disk and network, as the guide asks for."""
    return [builders.node(f"{prefix}-{number}", cpu=cpu, memory="64Gi", capacity=RATES) for number in range(count)]


@pytest.fixture(scope="module")
def control(control_plane):
    """Run Dovetail with the queues of the example, and return the address of control's metrics."""
    with dovetail_on(control_plane), control_on(control_plane, **SETTINGS) as url:
        yield url


class Cluster:
    """The control plane as these tests use it."""

    def __init__(self, control_plane):
        self.control_plane = control_plane
        self.client = control_plane.client()

    def apply(self, file):
        """Apply an example of one object; a field that the API server does not know is an error."""
        (applied,) = self.control_plane.apply(documents(file), fieldValidation="Strict")
        return applied

    def held_pods(self, count):
        """Wait for this many pods, none of which may go yet; return them as Dovetail reads them."""
        pods = workload.wait_until(lambda: self._all_there(count), 60, f"{count} pods")
        assert all(pod["spec"]["schedulingGates"] == [HOLD] for pod in pods)
        assert {pod["spec"]["schedulerName"] for pod in pods} == {"dovetail"}
        return [pod_from(msgspec.json.decode(json.dumps(pod), type=PodObject)) for pod in pods]

    def bound(self, count):
        """Wait until this many pods have a node; return where they are."""
        workload.wait_until(lambda: len(workload.bound_pods(self.client)) == count, 60, f"{count} bound pods")
        return workload.bound_pods(self.client)

    def _all_there(self, count):
        pods = workload.pods(self.client)
        assert len(pods) <= count
        return pods if len(pods) == count else None


@pytest.fixture
def cluster(control_plane):
    return Cluster(control_plane)


@pytest.fixture
def custom(cluster):
    """Return what applies an example of a custom resource; it and its kind are deleted after the test."""
    with ExitStack() as kinds:

        def apply(file):
            (manifest,) = documents(file)
            kinds.enter_context(crds.installed(cluster.client, manifest["kind"]))
            return cluster.apply(file)

        yield apply


def common(pods, field):
    """Return the value that this field of the identity has in all these pods."""
    (value,) = {getattr(pod.identity, field) for pod in pods}
    return value


def stages(pods):
    """Return how many pods each stage has, by its name."""
    return Counter(pod.identity.stage for pod in pods)


def demands(pods):
    """Return what a pod of each stage demands, besides its place; all pods of a stage demand the same."""
    demand = {}
    for pod in pods:
        amounts = {name: amount for name, amount in pod.demand.items() if name != "pods"}
        assert demand.setdefault(pod.identity.stage, amounts) == amounts
    return demand


def test_the_gated_job_waits_in_its_queue_and_then_runs(cluster):
    job = cluster.apply("job.yaml")
    pods = cluster.held_pods(8)

    assert common(pods, "queue") == "research"
    assert common(pods, "job") == "default/word-count"
    assert {pod.owner for pod in pods} == {job["metadata"]["uid"]}
    assert stages(pods) == {"map": 8}
    assert demands(pods) == {"map": {"cpu": 500, "memory": GIB, "disk-read": 50e6, "network-out": 10e6}}
    assert {(pod.duration, pod.problem) for pod in pods} == {(60.0, None)}

    workload.create_nodes(cluster.client, nodes(2))
    cluster.bound(8)


def test_gpus_are_packed_and_count_in_the_share_of_their_queue(cluster, control):
    cluster.apply("gpu.yaml")
    pods = cluster.held_pods(3)

    assert common(pods, "queue") == "training"
    assert common(pods, "job") == "default/fine-tune"
    assert demands(pods) == {"": {"cpu": 4_000, "memory": 16 * GIB, "nvidia.com/gpu": 2}}

    taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule", "value": "present"}
    gpus = {"nvidia.com/gpu": 8}
    gpu_node = builders.node("gpu-0", cpu=64, memory="512Gi", extended=gpus, taints=[taint])
    workload.create_nodes(cluster.client, [*nodes(1), gpu_node])
    assert set(cluster.bound(3).values()) == {"gpu-0"}

    # Six of eight GPUs; of CPU it is 12 of 80 cores, of memory 48 of 576 GiB.
    share = 6 / 8
    workload.wait_until(
        lambda: metric(control, "dovetail_queue_share", queue="training") == share, 20, f"a share of {share}"
    )


def test_drivers_and_executors_of_a_spark_application_are_two_stages_of_one_job(cluster, custom):
    application = custom("spark.yaml")
    workload.create_pods(cluster.client, operators.spark_pods(application))
    pods = cluster.held_pods(4)

    assert common(pods, "queue") == "batch"
    assert common(pods, "job") == f"default/spark-{application['metadata']['uid'].replace('-', '')}"
    assert stages(pods) == {"driver": 1, "executor": 3}
    assert demands(pods) == {
        "driver": {"cpu": 1_000, "memory": (1_024 + 384) * MIB},
        "executor": {"cpu": 2_000, "memory": (4_096 + 409) * MIB, "network-in": 100e6, "network-out": 100e6},
    }

    workload.create_nodes(cluster.client, nodes(1))
    cluster.bound(4)


def test_a_ray_cluster_starts_with_its_workers_or_not_at_all(cluster, custom):
    workload.create_pods(cluster.client, operators.ray_pods(custom("ray.yaml")))
    pods = cluster.held_pods(3)

    assert common(pods, "queue") == "research"
    assert common(pods, "job") == common(pods, "group") == "default/sweep"
    assert common(pods, "least") == 3
    assert sorted((pod.demand["cpu"], pod.demand["memory"] / GIB) for pod in pods) == [
        (1_000, 4),
        (4_000, 8),
        (4_000, 8),
    ]
    assert Counter(pod.demand.get("network-in") for pod in pods) == {None: 1, 50e6: 2}

    workload.create_nodes(cluster.client, nodes(1, "small", cpu=8))
    time.sleep(2)
    assert workload.bound_pods(cluster.client) == {}, "one worker fits beside the head, two do not"
    workload.create_nodes(cluster.client, nodes(1, "more", cpu=8))
    cluster.bound(3)


def test_the_pods_of_a_workflow_are_one_job_with_a_stage_for_each_template(cluster, custom):
    workflow = custom("argo.yaml")
    workload.create_pods(cluster.client, operators.argo_pods(workflow))
    pods = cluster.held_pods(4)

    assert common(pods, "queue") == "batch"
    assert common(pods, "job") == workflow["metadata"]["uid"]
    assert stages(pods) == {"extract": 3, "merge": 1}
    assert demands(pods) == {
        "extract": {"cpu": 1_000, "memory": 2 * GIB, "disk-read": 80e6},
        "merge": {"cpu": 2_000, "memory": 8 * GIB, "disk-write": 40e6},
    }
    hints = {(pod.identity.stage, pod.duration, pod.tasks) for pod in pods}
    assert hints == {("extract", 120.0, 3), ("merge", 30.0, None)}

    workload.create_nodes(cluster.client, nodes(1))
    cluster.bound(4)


def test_the_jobs_of_a_job_set_are_one_gang(cluster, custom):
    cluster.control_plane.apply(operators.jobset_jobs(custom("jobset.yaml")), fieldValidation="Strict")
    pods = cluster.held_pods(5)

    assert common(pods, "queue") == "training"
    assert common(pods, "job") == common(pods, "group") == "default/train"
    assert common(pods, "least") == 5
    assert stages(pods) == {"leader": 1, "worker": 4}
    assert demands(pods) == {
        "leader": {"cpu": 1_000, "memory": 2 * GIB},
        "worker": {"cpu": 4_000, "memory": 8 * GIB, "network-in": 100e6, "network-out": 100e6},
    }

    workload.create_nodes(cluster.client, nodes(1))
    time.sleep(2)
    assert workload.bound_pods(cluster.client) == {}, "16 cores are one too few for the five"
    workload.create_nodes(cluster.client, nodes(1, "more"))
    cluster.bound(5)

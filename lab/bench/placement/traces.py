"""Readers of workload traces: CSV files in, workloads (nodes and tasks) out.

The traces are not part of Dovetail. `openb_gpu2023` is Alibaba's cluster-trace-gpu-v2023, `alibaba2017_batch` the
batch part of its cluster-trace-v2017.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from extender.cluster.model import Node, Pod
from extender.cluster.resources import CPU, MEMORY
from lab.sim.workloads.columns import number, read, text, whole

OPENB_NODES = Path("openb_gpu2023/openb_node_list_gpu_node.csv")
OPENB_PODS = Path("openb_gpu2023/openb_pod_list_default.csv")
ALIBABA_JOBS = Path("alibaba2017_batch/jobs.csv")

GPU = "alibabacloud.com/gpu-milli"
"""Thousandths of a GPU: the extended resource by which a cluster that shares GPUs counts them."""

_MIB = 2.0**20
_MACHINE_CORES = 64
_MACHINE_MEMORY = 2.0**40
"""Alibaba 2017 gives memory as a fraction of its (equal) machines; any size will do."""


@dataclass(frozen=True, slots=True)
class Task:
    """A shape of pod: what it demands, how many GPUs and how much of each, how many come at once, and how often."""

    pod: Pod
    gpus: int = 0
    gpu_milli: int = 0
    wave: int = 1
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Workload:
    """A cluster and the tasks that its pods are drawn from. `gpus`: whole GPUs per node, none where there are none."""

    name: str
    nodes: tuple[Node, ...]
    tasks: tuple[Task, ...]
    gpus: Mapping[str, int]


def read_openb(directory: Path, *, every: int = 1) -> Workload:
    """Return the GPU cluster (each `every`-th node) and its pods. Raises TraceError."""
    nodes = [
        (Node(name, {CPU: cpu, MEMORY: memory * _MIB, GPU: gpus * 1000.0}), gpus)
        for name, cpu, memory, gpus in read(
            directory / OPENB_NODES, {"sn": text, "cpu_milli": whole, "memory_mib": whole, "gpu": whole}
        )
    ][::every]
    columns = {"name": text, "cpu_milli": whole, "memory_mib": whole, "num_gpu": whole, "gpu_milli": whole}
    tasks = [
        Task(_pod(name, {CPU: cpu, MEMORY: memory * _MIB, GPU: float(gpus * milli)}), gpus, milli)
        for name, cpu, memory, gpus, milli in read(directory / OPENB_PODS, columns)
    ]
    return Workload("openb", tuple(node for node, _ in nodes), tuple(tasks), {node.name: n for node, n in nodes})


def read_alibaba2017(directory: Path, *, machines: int, longest_wave: int = 100) -> Workload:
    """Return equal machines and the batch tasks.

    The instances of a task are started together, in waves of at most `longest_wave` (one task has 36,326); the chance
    to draw a task grows with its number of waves, so that the mix is the trace's. Raises TraceError.
    """
    columns = {"job_id": text, "task_id": text, "cpu_cores": number, "mem_norm": number, "instances": whole}
    tasks = []
    for job, task, cores, memory, instances in read(directory / ALIBABA_JOBS, columns):
        wave = min(instances, longest_wave)
        pod = _pod(f"{job}-{task}", {CPU: round(cores * 1000), MEMORY: round(memory * _MACHINE_MEMORY)})
        tasks.append(Task(pod, wave=wave, weight=instances / wave if wave else 0.0))
    capacity = {CPU: _MACHINE_CORES * 1000.0, MEMORY: _MACHINE_MEMORY}
    nodes = tuple(Node(f"machine-{index:04}", capacity) for index in range(machines))
    return Workload("alibaba2017", nodes, tuple(tasks), {})


def _pod(name: str, demand: Mapping[str, float]) -> Pod:
    return Pod(
        uid=name, namespace="trace", name=name, demand={key: float(amount) for key, amount in demand.items() if amount}
    )

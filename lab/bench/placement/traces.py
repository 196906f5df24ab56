"""Readers of workload traces: CSV files in, workloads (nodes and tasks) out.

The traces are not part of Dovetail. `openb_gpu2023` is Alibaba's cluster-trace-gpu-v2023, `alibaba2017_batch` the
batch part of its cluster-trace-v2017.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from extender.cluster.eligibility import ANYWHERE, Constraints, Requirement
from extender.cluster.model import Node, Pod
from extender.cluster.resources import CPU, MEMORY
from lab.sim.workloads.columns import header, number, read, text, whole

OPENB_NODES = Path("openb_gpu2023/openb_node_list_gpu_node.csv")
OPENB_PODS = Path("openb_gpu2023/openb_pod_list_default.csv")
_POD_LIST = "openb_pod_list_"
ALIBABA_JOBS = Path("alibaba2017_batch/jobs.csv")

GPU = "alibabacloud.com/gpu-milli"
"""Thousandths of a GPU: the extended resource by which a cluster that shares GPUs counts them."""

_MIB = 2.0**20
_MODEL = "gpu-model"
_MACHINE_CORES = 64
_LONGEST_WAVE = 100
_MACHINE_MEMORY = 2.0**40
"""Alibaba 2017 gives memory as a fraction of its (equal) machines; any size will do."""


@dataclass(frozen=True, slots=True)
class PodShape:
    """A shape of pod: what it demands, how many GPUs and how much of each, how many come at once, and how often.

    `models` are the models of GPU that will do, any where there are none.
    """

    pod: Pod
    gpus: int = 0
    gpu_milli: int = 0
    wave: int = 1
    weight: float = 1.0
    models: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class TraceCluster:
    """A cluster and the tasks that its pods are drawn from. `gpus`: whole GPUs per node, none where there are none.

    `models` is each node's model of GPU. Where the tasks are `listed`, each comes once before any comes again.
    """

    name: str
    nodes: tuple[Node, ...]
    tasks: tuple[PodShape, ...]
    gpus: Mapping[str, int]
    models: Mapping[str, str] = field(default_factory=dict)
    listed: bool = False


def openb_variants(directory: Path) -> Sequence[str]:
    """Return the variants of the GPU cluster's workload that the folder holds, `default` first."""
    there = (path.stem.removeprefix(_POD_LIST) for path in (directory / OPENB_PODS).parent.glob(f"{_POD_LIST}*.csv"))
    return sorted(there, key=lambda variant: (variant != "default", variant)) or ["default"]


def read_openb(directory: Path, *, variant: str = "default", every: int = 1) -> TraceCluster:
    """Return the GPU cluster (each `every`-th node) and the pods of a variant of its workload. Raises TraceError."""
    node_columns = {"sn": text, "cpu_milli": whole, "memory_mib": whole, "gpu": whole, "model": text}
    nodes = list(read(directory / OPENB_NODES, node_columns))[::every]
    pods = (directory / OPENB_PODS).with_name(f"{_POD_LIST}{variant}.csv")
    columns = {"name": text, "cpu_milli": whole, "memory_mib": whole, "num_gpu": whole, "gpu_milli": whole}
    if "gpu_spec" in header(pods):  # not in every variant
        columns["gpu_spec"] = text
    tasks = []
    for name, cpu, memory, gpus, milli, *specs in read(pods, columns):
        demand = {CPU: cpu, MEMORY: memory * _MIB, GPU: float(gpus * milli)}
        models = [model for spec in specs for model in spec.split("|") if model]
        tasks.append(PodShape(_pod(name, demand, models), gpus, milli, models=tuple(models)))
    return TraceCluster(
        variant,
        tuple(
            Node(name, {CPU: cpu, MEMORY: memory * _MIB, GPU: gpus * 1000.0}, labels={_MODEL: model})
            for name, cpu, memory, gpus, model in nodes
        ),
        tuple(tasks),
        gpus={name: gpus for name, _, _, gpus, _ in nodes},
        models={name: model for name, *_, model in nodes},
        listed=True,
    )


def read_alibaba2017(directory: Path, *, machines: int) -> TraceCluster:
    """Return equal machines and the batch tasks.

    The instances of a task are started together, in waves of at most `_LONGEST_WAVE` (one task has 36,326); the chance
    to draw a task grows with its number of waves, so that the mix is the trace's. Raises TraceError.
    """
    columns = {"job_id": text, "task_id": text, "cpu_cores": number, "mem_norm": number, "instances": whole}
    tasks = []
    for job, task, cores, memory, instances in read(directory / ALIBABA_JOBS, columns):
        wave = min(instances, _LONGEST_WAVE)
        pod = _pod(f"{job}-{task}", {CPU: round(cores * 1000), MEMORY: round(memory * _MACHINE_MEMORY)})
        tasks.append(PodShape(pod, wave=wave, weight=instances / wave if wave else 0.0))
    capacity = {CPU: _MACHINE_CORES * 1000.0, MEMORY: _MACHINE_MEMORY}
    nodes = tuple(Node(f"machine-{index:04}", capacity) for index in range(machines))
    return TraceCluster("alibaba2017", nodes, tuple(tasks), {})


def _pod(name: str, demand: Mapping[str, float], models: Sequence[str] = ()) -> Pod:
    """Return a pod; `models` are the models of GPU that will do, any where there are none."""
    return Pod(
        uid=name,
        namespace="trace",
        name=name,
        demand={key: float(amount) for key, amount in demand.items() if amount},
        constraints=Constraints(terms=((Requirement(_MODEL, "In", tuple(models)),),)) if models else ANYWHERE,
    )

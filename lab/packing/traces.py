"""Clusters of published traces as packing problems: openb (Alibaba's GPU cluster of 2023), and Google's of ROADEF 2012.

The traces are not part of Dovetail.
"""

from collections.abc import Callable
from pathlib import Path

from extender.cluster.eligibility import ANYWHERE, Constraints, Requirement
from extender.cluster.model import Node
from extender.cluster.resources import CPU, MEMORY, Amounts
from extender.errors import TraceError
from lab.packing.model import problem_of
from lab.packing.moment import ClusterMoment
from lab.packing.task import PackingTask
from lab.sim.workloads.columns import number, read, text, whole

GPU = "alibabacloud.com/gpu-milli"
"""Thousandths of a GPU."""

_MIB = 2.0**20
_MODEL = "gpu-model"
_OPENB_NODES, _OPENB_PODS = "openb_node_list_gpu_node.csv", "openb_pod_list_gpuspec25.csv"
_ROADEF_MACHINES, _ROADEF_PROCESSES = "machines.csv", "processes.csv"


def read_trace(folder: Path) -> ClusterMoment:
    """Return the cluster of a trace's folder. Raises TraceError for a folder of none that is known."""
    for file, reader in ((_OPENB_NODES, read_openb), (_ROADEF_MACHINES, read_roadef)):
        if (folder / file).is_file():
            return reader(folder)
    raise TraceError(
        f"{folder}: no trace is known that looks like this; accepted: folders with {_OPENB_NODES} or {_ROADEF_MACHINES}"
    )


def read_openb(folder: Path, *, every: int = 1) -> ClusterMoment:
    """Return each `every`-th node and pod of the GPU cluster; a quarter of the GPU pods name models of GPUs.

    The trace's pods did not run all at once, and have no nodes here. Raises TraceError.
    """
    node_columns = {"sn": text, "cpu_milli": whole, "memory_mib": whole, "gpu": whole, "model": text}
    nodes = [
        Node(name, _amounts(cpu, memory, 1000 * gpus), labels={_MODEL: model})
        for name, cpu, memory, gpus, model in read(folder / _OPENB_NODES, node_columns)
    ][::every]
    pod_columns = {"name": text, "cpu_milli": whole, "memory_mib": whole, "num_gpu": whole, "gpu_milli": whole}
    pod_columns |= {"gpu_spec": text, "creation_time": number}
    tasks = [
        PackingTask(_amounts(cpu, memory, gpus * milli), created, name, _of_models(models))
        for name, cpu, memory, gpus, milli, models, created in read(folder / _OPENB_PODS, pod_columns)
    ][::every]
    unmodelled = ("when pods came and went: all are there at once",)
    return ClusterMoment(str(folder), problem_of(nodes, tasks), (), unmodelled, placed=False)


def read_roadef(folder: Path, *, every: int = 1) -> ClusterMoment:
    """Return each `every`-th machine and its processes; those of a service run on machines of their own.

    Raises TraceError.
    """
    header = _header(folder / _ROADEF_MACHINES)
    count = sum(name.startswith("cap_") for name in header)
    names = [CPU, MEMORY, *(f"roadef/r{row}" for row in range(2, count))]
    machine_columns: dict[str, Callable[[str], object]] = {"machine": text}
    process_columns: dict[str, Callable[[str], object]] = {"process": whole, "service": text, "initial_machine": text}
    for row in range(count):
        machine_columns[f"cap_r{row}"] = process_columns[f"req_r{row}"] = whole
    nodes = [
        Node(_machine(name), dict(zip(names, map(float, amounts), strict=True)))
        for name, *amounts in read(folder / _ROADEF_MACHINES, machine_columns)
    ]
    left_out = {node.name for place, node in enumerate(nodes) if place % every}
    tasks = [
        PackingTask(
            dict(zip(names, map(float, amounts), strict=True)),
            float(process),
            f"service {service}",
            node=_machine(machine),
            group=service,
        )
        for process, service, machine, *amounts in read(folder / _ROADEF_PROCESSES, process_columns)
        if _machine(machine) not in left_out
    ]
    unmodelled = (
        "the spread of services over locations",
        "dependencies between services",
        "safety margins of machines",
    )
    return ClusterMoment(str(folder), problem_of(nodes[::every], tasks), (), unmodelled)


def _amounts(cpu: int, memory: int, gpu_milli: int) -> Amounts:
    amounts = {CPU: float(cpu), MEMORY: memory * _MIB, GPU: float(gpu_milli)}
    return {name: amount for name, amount in amounts.items() if amount}


def _of_models(models: str) -> Constraints:
    if not models:
        return ANYWHERE
    return Constraints(terms=((Requirement(_MODEL, "In", tuple(models.split("|"))),),))


def _machine(name: str) -> str:
    return f"machine-{int(name):04}"


def _header(file: Path) -> list[str]:
    try:
        with file.open(encoding="utf-8") as stream:
            return stream.readline().strip().split(",")
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{file} cannot be read: {error}") from None

"""Readers of workload traces: CSV files in, workloads (nodes and tasks) out.

The traces are not part of Dovetail. `openb_gpu2023` is Alibaba's cluster-trace-gpu-v2023, `alibaba2017_batch` the
batch part of its cluster-trace-v2017.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extender.cluster.model import Node, Pod
from extender.cluster.resources import CPU, MEMORY
from extender.errors import TraceError

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
        for name, cpu, memory, gpus in _read(
            directory / OPENB_NODES, {"sn": _text, "cpu_milli": _whole, "memory_mib": _whole, "gpu": _whole}
        )
    ][::every]
    columns = {"name": _text, "cpu_milli": _whole, "memory_mib": _whole, "num_gpu": _whole, "gpu_milli": _whole}
    tasks = [
        Task(_pod(name, {CPU: cpu, MEMORY: memory * _MIB, GPU: float(gpus * milli)}), gpus, milli)
        for name, cpu, memory, gpus, milli in _read(directory / OPENB_PODS, columns)
    ]
    return Workload("openb", tuple(node for node, _ in nodes), tuple(tasks), {node.name: n for node, n in nodes})


def read_alibaba2017(directory: Path, *, machines: int, longest_wave: int = 100) -> Workload:
    """Return equal machines and the batch tasks.

    The instances of a task are started together, in waves of at most `longest_wave` (one task has 36,326); the chance
    to draw a task grows with its number of waves, so that the mix is the trace's. Raises TraceError.
    """
    columns = {"job_id": _text, "task_id": _text, "cpu_cores": _number, "mem_norm": _number, "instances": _whole}
    tasks = []
    for job, task, cores, memory, instances in _read(directory / ALIBABA_JOBS, columns):
        wave = min(instances, longest_wave)
        pod = _pod(f"{job}-{task}", {CPU: round(cores * 1000), MEMORY: round(memory * _MACHINE_MEMORY)})
        tasks.append(Task(pod, wave=wave, weight=instances / wave if wave else 0.0))
    capacity = {CPU: _MACHINE_CORES * 1000.0, MEMORY: _MACHINE_MEMORY}
    nodes = tuple(Node(f"machine-{number:04}", capacity) for number in range(machines))
    return Workload("alibaba2017", nodes, tuple(tasks), {})


def _pod(name: str, demand: Mapping[str, float]) -> Pod:
    return Pod(
        uid=name, namespace="trace", name=name, demand={key: float(amount) for key, amount in demand.items() if amount}
    )


def _text(field: str) -> str:
    return field


def _whole(field: str) -> int:
    """Return a whole number of at least 0."""
    number = int(field)
    if number < 0:
        raise ValueError(field)
    return number


def _number(field: str) -> float:
    """Return a finite number of at least 0."""
    number = float(field)
    if not 0 <= number < float("inf"):
        raise ValueError(field)
    return number


_ACCEPTED: Mapping[Callable[[str], Any], str] = {
    _whole: "a whole number, 0 or more, is needed",
    _number: "a number, 0 or more, is needed",
}


def _read(path: Path, columns: Mapping[str, Callable[[str], Any]]) -> Iterator[list[Any]]:
    """Yield the named columns of each line, converted. Raises TraceError with file, line and column."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file)
            header = next(lines, None)
            if header is None:
                raise TraceError(f"{path} is empty; a header line with {', '.join(columns)} is needed")
            places = [_place(path, header, column) for column in columns]
            count = 0
            for count, fields in enumerate(lines, start=1):  # noqa: B007 - tells whether there was any
                yield _convert(f"{path}, line {lines.line_num}", header, fields, places, columns)
            if not count:
                raise TraceError(f"{path} has a header but no lines; is it cut off?")
    except FileNotFoundError:
        raise TraceError(f"{path} does not exist; say where the traces are with --traces") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path} cannot be read: {error}") from error


def _place(path: Path, header: Sequence[str], column: str) -> int:
    if column not in header:
        raise TraceError(f"{path}, line 1: no column {column!r}; found {', '.join(header) or 'nothing'}")
    return header.index(column)


def _convert(
    where: str,
    header: Sequence[str],
    fields: Sequence[str],
    places: Sequence[int],
    columns: Mapping[str, Callable[[str], Any]],
) -> list[Any]:
    """Return the fields of one line in the order of `columns`."""
    if len(fields) < len(header):
        raise TraceError(
            f"{where}, column {header[len(fields)]!r}: missing; "
            f"the line has {len(fields)} of {len(header)} fields: is the file cut off?"
        )
    values = []
    for place, (column, convert) in zip(places, columns.items(), strict=True):
        try:
            values.append(convert(fields[place]))
        except ValueError:
            raise TraceError(f"{where}, column {column!r}: {fields[place]!r}; {_ACCEPTED[convert]}") from None
    return values

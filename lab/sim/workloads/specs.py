"""What a user writes to name a workload or machines: `suite:jobs=20`, `tetris:40`, `8x32c96g,disk=800M,net=1250M`."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from extender.arrays import Floats
from extender.cluster.resources import (
    CPU,
    DISK_READ,
    DISK_WRITE,
    MEMORY,
    NETWORK_IN,
    NETWORK_OUT,
    parse_quantity,
    row_of,
)
from extender.errors import BadQuantity
from lab.errors import SpecError
from lab.sim.dag import executor_jobs
from lab.sim.workloads.alibaba import JOBS_2017, JOBS_2018, alibaba2017, alibaba2018
from lab.sim.workloads.arrivals import ARRIVALS, PACED, START
from lab.sim.workloads.dags import CORES, DISK, MEMORY_BYTES, NETWORK, dags
from lab.sim.workloads.parameters import GIB, MB, Parameters
from lab.sim.workloads.suite import suite
from lab.sim.workloads.swim import swim
from lab.sim.workloads.workload import Machines, Workload

WORKLOADS: Mapping[str, str] = {
    "suite[:jobs=N]": "the deployment suite of Tetris 5.1",
    "swim:TRACE[,jobs=N|all][,arrivals=A][,load=CORES]": "Facebook-like jobs: fb2009_0, fb2009_1 or fb2010_0",
    "alibaba2017[:jobs=N|all][,arrivals=A][,load=CORES]": "batch jobs of Alibaba 2017, independent stages",
    "alibaba2018[:jobs=N|all][,arrivals=A][,load=CORES]": "DAGs of Alibaba 2018",
    "dags[:jobs=N][,arrivals=A][,load=CORES]": "DAGs drawn by the statistics of Graphene 2.3, for machines dags",
    "tpch:SEQUENCE": "TPC-H queries in a published sequence, 1 to 5, for machines executors[:N]",
    "recording:FILE": "what a cluster did, as `dovetail record` wrote it",
}
"""The forms of a workload and what each is. A: paced (to the load; the default), trace (the trace's times), start."""

MACHINES: Mapping[str, str] = {
    "tetris[:N]": "250 (or N) of 32 cores, 96 GB, 8 disks, 10 Gbps less 1.25x over-subscription (Tetris 5.1)",
    "facebook[:N]": "100 (or N) of 12 cores, 32 GB, 4 disks at 50 MB/s, 1 Gbps (Tetris 5.3), less daemons and headers",
    "alibaba2017[:N]": "50 (or N) of 64 cores",
    "alibaba2018[:N]": "10 (or N) of 96 cores",
    "dags[:N]": "20 (or N) of 16 cores, 128 GB, 10 disks, 10 Gbps (Graphene 8.1)",
    "executors[:N]": "10 (or N) that run a task at a time and take 2 s to change jobs, for tpch:SEQUENCE",
    "NxCcMg,disk=RATE,net=RATE": "N of C cores and M GB; bytes per second each way, as in 8x32c96g,disk=800M,net=1250M",
    "recorded": "the nodes of the recording that is replayed, as they came, changed and went",
    "recorded-all": "the same nodes, each there all the time",
}
"""The forms of machines and what each is."""

_SWIM = Path("swim_facebook")
_OWN = re.compile(r"(\d+)x(\d+(?:\.\d+)?)c(\d+(?:\.\d+)?)g", re.ASCII)
_ALL = "all"


def workload(spec: str, seed: int, traces: Path, parameters: Parameters | None = None) -> Workload:
    """Return the workload that a spec names; traces are read from that folder.

    Raises SpecError, naming the wrong part and what is accepted, and TraceError.
    """
    name, _, rest = spec.partition(":")
    chosen = parameters or Parameters()
    if name == "suite":
        options = _options(spec, rest, {"jobs": _count})
        return suite(seed, jobs=options.get("jobs"), parameters=chosen)
    if name == "swim":
        trace, _, rest = rest.partition(",")
        if not trace or "=" in trace:
            raise SpecError(f"workload {spec!r}: swim needs the name of a trace first, as in swim:fb2009_0,jobs=500")
        return _replay(
            swim, traces / _SWIM / f"{trace}.tsv", _TraceSpec(spec, rest, seed, chosen.facebook.jobs, chosen)
        )
    if name == "alibaba2017":
        return _replay(alibaba2017, traces / JOBS_2017, _TraceSpec(spec, rest, seed, chosen.alibaba.jobs, chosen))
    if name == "alibaba2018":
        return _replay(alibaba2018, traces / JOBS_2018, _TraceSpec(spec, rest, seed, chosen.alibaba.jobs, chosen))
    if name == "dags":
        return dags(seed, **_options(spec, rest, {"jobs": _count, "arrivals": _untraced, "load": _load}))
    if name == "tpch":
        return executor_jobs.sequence_of(spec, _sequence(spec, rest), traces)
    raise SpecError(f"workload {spec!r}: {name!r} is unknown; accepted: {', '.join(WORKLOADS)}")


def machines(spec: str, parameters: Parameters | None = None) -> Machines:
    """Return the machines that a spec names. Raises SpecError, naming the wrong part and what is accepted."""
    profiles = _profiles(parameters or Parameters())
    name, colon, rest = spec.partition(":")
    if name == "executors":
        return executor_jobs.executors(_number_of(spec, rest) if colon else executor_jobs.EXECUTORS)
    if name in profiles:
        profile = profiles[name]
        return _equal(spec, _number_of(spec, rest) if colon else profile.machines, profile)
    shape, _, rest = spec.partition(",")
    match = _OWN.fullmatch(shape)
    if match is None:
        raise SpecError(f"machines {spec!r}: {shape!r} is unknown; accepted: {', '.join(MACHINES)}")
    rates = _options(spec, rest, {"disk": _rate, "net": _rate}, kind="machines")
    missing = [rate for rate in ("disk", "net") if rate not in rates]
    if missing:
        raise SpecError(f"machines {spec!r}: {missing[0]} is missing; needed: disk=RATE,net=RATE, as in disk=800M")
    count, cores, memory = int(match[1]), float(match[2]), float(match[3])
    return _equal(spec, _number_of(spec, match[1]), _Profile(count, cores, memory * GIB, rates["disk"], rates["net"]))


@dataclass(frozen=True, slots=True)
class _Profile:
    """How many machines by default, and what each offers: cores, bytes, bytes per second each way.

    `whole` is what each has of memory and of its link (None: what it offers).
    """

    machines: int
    cores: float
    memory: float
    disk: float
    network: float
    whole: tuple[float, float] | None = None


def _profiles(chosen: Parameters) -> dict[str, _Profile]:
    alibaba, facebook = chosen.alibaba, chosen.facebook
    whole = 32 * GIB, 125 * MB
    offered = whole[0] - facebook.system_memory
    return {
        "tetris": _Profile(250, 32, 96 * GIB, chosen.suite.disk, chosen.suite.network),
        "facebook": _Profile(100, 12, offered, 4 * 50 * MB, facebook.link, whole),
        "alibaba2017": _Profile(50, 64, alibaba.memory_2017, alibaba.disk, alibaba.network),
        "alibaba2018": _Profile(10, 96, alibaba.memory_2018, alibaba.disk, alibaba.network),
        "dags": _Profile(20, CORES, MEMORY_BYTES, DISK, NETWORK),
    }


def _equal(spec: str, count: int, profile: _Profile) -> Machines:
    whole = None if profile.whole is None else _rows(count, profile, *profile.whole)
    return Machines(name=spec, capacity=_rows(count, profile, profile.memory, profile.network), whole=whole)


def _rows(count: int, profile: _Profile, memory: float, network: float) -> Floats:
    rates = {DISK_READ: profile.disk, DISK_WRITE: profile.disk, NETWORK_IN: network, NETWORK_OUT: network}
    row = row_of({CPU: round(profile.cores * 1000), MEMORY: round(memory), **rates}, otherwise=math.inf)
    return np.tile(np.array(row, dtype=float), (count, 1))


@dataclass(frozen=True, slots=True)
class _TraceSpec:
    """The spec of a trace: as written, its options as written, and the number of jobs if it does not say."""

    spec: str
    rest: str
    seed: int
    jobs: int
    parameters: Parameters


def _replay(reader: Callable[..., Workload], path: Path, trace: _TraceSpec) -> Workload:
    accepted = {"jobs": _count_or_all, "arrivals": _arrivals, "load": _load}
    options = {"jobs": trace.jobs} | _options(trace.spec, trace.rest, accepted)
    return reader(path, trace.seed, parameters=trace.parameters, **options)


def _options(
    spec: str, rest: str, accepted: Mapping[str, Callable[[str], Any]], *, kind: str = "workload"
) -> dict[str, Any]:
    """Return the options `name=value,name=value`, converted. Raises SpecError."""
    options: dict[str, Any] = {}
    for part in rest.split(",") if rest else ():
        name, equals, value = part.partition("=")
        if name not in accepted or not equals:
            options_accepted = ", ".join(f"{option}=..." for option in accepted)
            raise SpecError(f"{kind} {spec!r}: {part!r} is unknown; accepted: {options_accepted}")
        if name in options:
            raise SpecError(f"{kind} {spec!r}: {name} stands twice; accepted: once")
        try:
            options[name] = accepted[name](value)
        except ValueError as error:
            raise SpecError(f"{kind} {spec!r}: {name}={value}; accepted: {error}") from None
    return options


def _sequence(spec: str, text: str) -> int:
    try:
        return _count(text)
    except ValueError:
        raise SpecError(f"workload {spec!r}: {text!r}; accepted: the number of a sequence, as in tpch:1") from None


def _number_of(spec: str, text: str) -> int:
    try:
        return _count(text)
    except ValueError as error:
        raise SpecError(f"machines {spec!r}: {text!r} machines; accepted: {error}") from None


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("a whole number, 1 or more")
    return int(text)


def _count_or_all(text: str) -> int | None:
    return None if text == _ALL else _count(text)


def _arrivals(text: str) -> str:
    if text not in ARRIVALS:
        raise ValueError(", ".join(ARRIVALS))
    return text


def _untraced(text: str) -> str:
    if text not in (PACED, START):
        raise ValueError(f"{PACED}, {START}")
    return text


def _load(text: str) -> float:
    try:
        cores = float(text)
    except ValueError:
        cores = 0.0
    if not 0 < cores < float("inf"):
        raise ValueError("a number of cores above 0")
    return cores


def _rate(text: str) -> float:
    try:
        return parse_quantity(text)
    except BadQuantity as error:
        raise ValueError(f"bytes per second, as in 800M ({error})") from None

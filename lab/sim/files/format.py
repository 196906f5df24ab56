"""The lines of a workload file and of a machines file, and the JSON Schema of each."""

from typing import Annotated, Any, Literal

import msgspec

from extender.cluster.resources import DIMENSIONS, EPHEMERAL, HUGEPAGES, is_extended

RESOURCES = f"{', '.join(DIMENSIONS)}, {EPHEMERAL}, {HUGEPAGES}SIZE, or an extended resource such as nvidia.com/gpu"
"""The names of resources, in words."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
Names = Annotated[list[Name], msgspec.Meta(extra_json_schema={"uniqueItems": True})]
"""Names, each once; checked where jobs are made of lines, so that errors name the place."""

Quantity = str | float
"""As in Kubernetes: 2, 0.5, "250m", "16Gi"."""

LEAST_SECONDS, MOST_SECONDS = 0.001, 1e9
Seconds = Annotated[float, msgspec.Meta(ge=LEAST_SECONDS, le=MOST_SECONDS)]
COUNT = r"[1-9][0-9]{0,5}"
SecondsByCount = Annotated[
    dict[
        Annotated[str, msgspec.Meta(extra_json_schema={"pattern": f"^{COUNT}$"})],
        Annotated[float, msgspec.Meta(extra_json_schema={"minimum": LEAST_SECONDS, "maximum": MOST_SECONDS})],
    ],
    msgspec.Meta(min_length=1),
]
"""Counts of machines and seconds; checked where jobs are made of lines, so that errors name the count."""


def is_resource(name: str) -> bool:
    """Say whether lines may give an amount of what is called so."""
    return name in DIMENSIONS or name == EPHEMERAL or name.startswith(HUGEPAGES) or is_extended(name)


class _Line(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A part of a line; a field that is not known is a mistake."""


class TolerationLine(_Line):
    """A toleration, as a pod has it."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class InputLine(_Line):
    """What each task of a stage reads: bytes per second at its peak, and from where.

    `from`: its own machine (`local`), one block per task (`blocks`), or wherever the parents' tasks ran (`shuffle`).
    `nodes` has the machines that hold the block of each task, task by task; without it, blocks are drawn.
    """

    rate: Quantity
    source: Literal["local", "blocks", "shuffle"] = msgspec.field(default="local", name="from")
    nodes: list[Annotated[list[Name], msgspec.Meta(min_length=1)]] = []


class WavesLine(_Line):
    """The mean seconds of a task by how many machines its job has, for each wave; lines go from count to count.

    `fresh`: a machine's first task of the job; `first`: its first of the stage; `rest`: any other. A machine is with
    the job of the task that it started last. Without `first` those take what the `rest` take, without `fresh` those
    take what first ones do.
    """

    rest: SecondsByCount
    first: SecondsByCount | None = None
    fresh: SecondsByCount | None = None


class StageLine(_Line):
    """Tasks of one shape. `seconds` is what each takes at its peak demand: one number, one for each task, or by wave.

    `expected` is what the scheduler believes (default: the mean of `seconds`; by wave that is the mean if the job had
    all machines). `parents` are stages of the job that must have ended before. Of stages in `oneToOne` task n must have
    ended before its own task n.
    """

    name: Name
    demand: dict[Name, Quantity]
    seconds: Seconds | list[Seconds] | WavesLine
    tasks: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] = 1
    expected: Seconds | None = None
    parents: Names = []
    one_to_one: Names = []
    input: InputLine | None = None
    node_selector: dict[str, str] = {}
    tolerations: list[TolerationLine] = []


class JobLine(_Line):
    """A line of a workload file: one job. `arrives` is in seconds since any moment.

    `priority` is the value of its PriorityClass. With `gang` the tasks of each stage start together or not at all.
    `recurring` is the name of what runs again and again; this job is one run of it.
    """

    job: Name
    stages: Annotated[list[StageLine], msgspec.Meta(min_length=1, max_length=100_000)]
    arrives: Annotated[float, msgspec.Meta(ge=0, le=1e12)] = 0.0
    queue: Name = "default"
    priority: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)] = 0
    gang: bool = False
    recurring: Name | None = None

    def field(self, number: int, part: str = "") -> str:
        """Return the field that says a stage, or this part of it, for errors."""
        return f"stages[{number}].{part}" if part else f"stages[{number}]"


class TaintLine(_Line):
    """A taint, as a node has it."""

    key: Name
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: str = ""


class MachineLine(_Line):
    """A line of a machines file: machines of one shape. With `count` they are called name-0, name-1 and so on.

    `allocatable` is what each offers. A disk or network rate that is absent is not limited. `rack` is any name.
    `moveSeconds` is what it takes to come from one job to another, before its first task there.
    """

    name: Name
    allocatable: dict[Name, Quantity]
    count: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    labels: dict[str, str] = {}
    taints: list[TaintLine] = []
    rack: Name | None = None
    move_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0


FORMATS: dict[str, type[msgspec.Struct]] = {"workload": JobLine, "machines": MachineLine}
"""What a line is, by the format's name."""


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one line of the format of this name, one of FORMATS."""
    written = msgspec.json.schema(FORMATS[name])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **written}

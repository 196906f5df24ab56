"""Everything that the papers and the traces do not publish, each value with its reason and the range we report over.

Chosen only against what is published about the baselines and the clusters, never against what our planner gains. Those
of the suite that say "fitted" come out of a search that ran the two baselines alone. docs/results/workloads.md
prints this table and says how well it meets what is published.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, get_type_hints

Range = tuple[float, float]
"""A value is drawn uniformly between the two."""

MB, GB, GIB = 1e6, 1e9, 2.0**30
"""Bytes: disks and networks count in powers of ten, memory (a machine's, a slot's, a task's) in powers of two."""


@dataclass(frozen=True, slots=True)
class About:
    """What stands beside a value: its reason, and the ends of the range over which results are reported, if it has one.

    `unit` is what one of it is in the table, `scale` how many of the code's units that is.
    """

    why: str
    unit: str = ""
    low: Any = None
    high: Any = None
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Suite:
    """The deployment suite of Tetris 5.1, and the disks of its machines."""

    jobs: Annotated[int, About("5.1: 'over 100 jobs'", "jobs")] = 110
    large: Annotated[Range, About("5.1: 'couple 1000 tasks'; maps and reduces together", "tasks")] = (1500, 2500)
    medium: Annotated[Range, About("5.1: '1000'", "tasks")] = (750, 1250)
    small: Annotated[Range, About("5.1: '100s'", "tasks")] = (100, 500)
    memory_used: Annotated[
        Range,
        About(
            "the peak of a task in its container of 2 or 8 GB; fitted to table 6: above 75 % of a machine's memory "
            "under DRF and Capacity, never above 90 %",
            "of its size",
            (0.4, 0.7),
            (0.6, 0.95),
        ),
    ] = (0.5, 0.8)
    low_cpu: Annotated[
        Range,
        About(
            "in a container of 2 GB: half a core, as a task that waits for disks, and in one of 8 GB at most a core; "
            "fitted to table 6: Capacity, which counts memory, fills CPU above 75 % nearly always",
            "cores",
            (400, 435),
            (550, 650),
            1000,
        ),
    ] = (470, 510)
    high_cpu: Annotated[
        Range,
        About(
            "in a container of 2 GB: at most a core, as a task with one thread; fitted to table 6: Capacity has 18 % "
            "of the machines above 100 % of CPU, DRF, which counts CPU, none",
            "cores",
            (700, 850),
            (1000, 1300),
            1000,
        ),
    ] = (850, 1000)
    cpu_of_large: Annotated[
        float,
        About(
            "CPU of a task in a container of 8 GB, for 1 in one of 2 GB; table 2: cores and memory of tasks go "
            "together, by .33 and .41; fitted to table 6; 1 would be drawn apart",
            "times",
            1.0,
            2.5,
        ),
    ] = 1.9
    low_cpu_io: Annotated[
        Range,
        About(
            "reading and writing together; fitted to table 6: disks and network are above 100 % under both, and never "
            "CPU and disks at once",
            "MB/s",
            (70 * MB, 140 * MB),
            (120 * MB, 240 * MB),
            MB,
        ),
    ] = (95 * MB, 190 * MB)
    high_cpu_io: Annotated[
        Range,
        About(
            "5.1: much computation per byte, 'hence low peak I/O'; fitted to table 6: a sixth of the above",
            "MB/s",
            (11 * MB, 22 * MB),
            (20 * MB, 40 * MB),
            MB,
        ),
    ] = (15 * MB, 30 * MB)
    split: Annotated[
        Range,
        About(
            "what a map reads; 5.1: a run 'takes about five hours' under the baselines",
            "GB",
            (6.5 * GB, 9 * GB),
            (12 * GB, 16 * GB),
            GB,
        ),
    ] = (9.43 * GB, 12.6 * GB)
    duration_spread: Annotated[
        float, About("within a stage; 4.1: tasks of a stage differ in disk rate by a CoV of .25", "CoV", 0.1, 0.4)
    ] = 0.25
    output_copies: Annotated[int, About("HDFS keeps three of a final output: one here, two elsewhere", "copies")] = 3
    disk: Annotated[
        float,
        About(
            "8 disks of 7200 rpm at 200 MB/s, the outer tracks of their best, for reading and as much for writing; "
            "fitted to table 6: disks are less full than networks there",
            "MB/s",
            1000 * MB,
            2000 * MB,
            MB,
        ),
    ] = 1600 * MB
    network: Annotated[
        float,
        About(
            "10 Gbps and '1.25X over-subscription between racks' (5.1), which five sixths of what machines send must "
            "cross; high: without it",
            "MB/s",
            800 * MB,
            1250 * MB,
            MB,
        ),
    ] = 1000 * MB


@dataclass(frozen=True, slots=True)
class Facebook:
    """Facebook-like jobs from the SWIM traces, on the machines of Tetris 5.3.

    The spread of demands and how they go together is published (swim.VARIATIONS, swim.CORRELATION); these are not.
    """

    cpu: Annotated[
        float,
        About(
            "the median; 2.2.2: the most is 'over 6 cores', 20 times above; fitted to table 3, at the price of 10 "
            "cores here: CPU is above 75 % for .58 of the time",
            "cores",
            400,
            600,
            1000,
        ),
    ] = 500
    memory: Annotated[
        float,
        About(
            "the median; 2.2.2: the most is 'nearly 17GB', 20 times above; fitted to table 3, at the price of 24 GB "
            "here",
            "GB",
            0.85 * GB,
            1.5 * GB,
            GB,
        ),
    ] = 1.2 * GB
    disk: Annotated[
        float,
        About(
            "the median of reading and writing; fitted to table 3; low: nearer to maps of 19 s a block, the median of "
            "Delay Scheduling, 2",
            "MB/s",
            15 * MB,
            35 * MB,
            MB,
        ),
    ] = 27.7 * MB
    network: Annotated[
        float,
        About(
            "the median of what a reduce reads, and of what goes to copies of outputs; fitted to table 3; low and "
            "high as for disk",
            "MB/s",
            10 * MB,
            22 * MB,
            MB,
        ),
    ] = 16.9 * MB
    task_bytes: Annotated[
        float,
        About("the most that a reduce reads, or any task writes; Hive's default per reduce then", "GB", None, None, GB),
    ] = 1 * GB
    output_copies: Annotated[int, About("HDFS keeps three, as in the suite", "copies")] = 3
    system_memory: Annotated[
        float,
        About(
            "what the system and Hadoop's daemons hold of a machine's 32 GB; Hortonworks reserves 4 of 24 GB and 6 of "
            "48 (HDP 2, 'Determining HDP Memory Configuration Settings')",
            "GB",
            3 * GIB,
            6 * GIB,
            GIB,
        ),
    ] = 4 * GIB
    link: Annotated[
        float,
        About("what tasks get of a link of 1 Gbps: headers take 6 % (TCP, IP, Ethernet)", "MB/s", None, None, MB),
    ] = 117.5 * MB
    shortest: Annotated[
        float, About("a Hadoop task takes some heartbeats and a JVM, however little it reads", "s", 2.0, 10.0)
    ] = 5.0
    duration_spread: Annotated[float, About("as for the suite", "CoV", 0.1, 0.4)] = 0.25
    jobs: Annotated[int, About("a piece of the trace, so that a run takes seconds", "jobs")] = 500
    largest: Annotated[
        int,
        About("larger jobs are left out: 100 machines replay what 600 (2009) and 3,000 (2010) ran", "tasks"),
    ] = 10_000
    load: Annotated[
        float,
        About(
            "CPU asked for in the mean while jobs arrive, on 100 machines; fitted to table 3: more than they have, as "
            "the trace comes in bursts and CPU is above 75 % for .58 of the time",
            "cores",
            1200,
            2000,
        ),
    ] = 1550


@dataclass(frozen=True, slots=True)
class Alibaba:
    """Alibaba's batch jobs of 2017 and 2018: the traces have no sizes of memory, no disks and no networks."""

    memory_2017: Annotated[
        float, About("a machine of 64 cores; only slots see more of it than its parts", "GB", None, None, GIB)
    ] = 256 * GIB
    memory_2018: Annotated[float, About("a machine of 96 cores", "GB", None, None, GIB)] = 512 * GIB
    disk: Annotated[float, About("as in the suite", "MB/s", None, None, MB)] = 1000 * MB
    network: Annotated[float, About("10 Gbps", "MB/s", None, None, MB)] = 1250 * MB
    reading: Annotated[
        float,
        About(
            "the median per task; skewed as disks in Tetris 2.2.2; with all cores busy about half of the disks is",
            "MB/s",
            2 * MB,
            8 * MB,
            MB,
        ),
    ] = 4 * MB
    writing: Annotated[float, About("half of reading, as in most of the suite", "MB/s", 1 * MB, 4 * MB, MB)] = 2 * MB
    duration_spread: Annotated[float, About("as for the suite", "CoV", 0.1, 0.4)] = 0.25
    jobs: Annotated[int, About("a piece of the trace, so that a run takes seconds", "jobs")] = 200
    load_2017: Annotated[float, About("60 % of 50 machines", "cores", 1280, 2560)] = 1920
    load_2018: Annotated[float, About("60 % of 10 machines", "cores", 384, 768)] = 576


@dataclass(frozen=True, slots=True)
class Parameters:
    """All of them, by what they are about."""

    suite: Suite = field(default_factory=Suite)
    facebook: Facebook = field(default_factory=Facebook)
    alibaba: Alibaba = field(default_factory=Alibaba)


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the table: `name` is group and field, as in `suite.low_cpu`."""

    name: str
    value: Any
    about: About

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Return its name, its value, its range, and its reason, as docs/results/workloads.md shows them."""
        about = self.about
        ends = "" if about.low is None else f"{_shown(about.low, about.scale)}; {_shown(about.high, about.scale)}"
        return self.name, f"{_shown(self.value, about.scale)} {about.unit}", ends, about.why


def table(parameters: Parameters | None = None) -> list[Entry]:
    """Return all parameters with what stands beside them, in the order of their declaration."""
    chosen = parameters or Parameters()
    return [
        Entry(f"{group.name}.{name}", getattr(getattr(chosen, group.name), name), about)
        for group in fields(chosen)
        for name, about in _abouts(type(getattr(chosen, group.name))).items()
    ]


def variants(group: str) -> Iterator[tuple[str, Parameters]]:
    """Yield the parameters with one value of a group at an end of its range, and what was changed: `suite.disk low`."""
    chosen = Parameters()
    for name, about in _abouts(type(getattr(chosen, group))).items():
        for end, value in (("low", about.low), ("high", about.high)):
            if value is not None:
                changed = replace(getattr(chosen, group), **{name: value})
                yield f"{group}.{name} {end}", replace(chosen, **{group: changed})


def _abouts(group: type) -> dict[str, About]:
    hints = get_type_hints(group, include_extras=True)
    return {field.name: hints[field.name].__metadata__[0] for field in fields(group)}


def _shown(value: int | float | Range, scale: float) -> str:
    ends = value if isinstance(value, tuple) else (value,)
    return " to ".join(f"{end / scale:,.10g}" for end in ends)

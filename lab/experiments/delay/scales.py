"""The sizes of the delay experiment: FULL has the paper's sizes, QUICK is a small form that shows that it works."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.experiments.delay.scans import SlotCluster

BINS = ((1, 38), (2, 16), (10, 14), (50, 8), (100, 6), (200, 6), (400, 4), (800, 4), (4800, 4))
"""Maps of a job, and how many such jobs the benchmark has (table 2)."""


@dataclass(frozen=True, slots=True)
class DelayScale:
    """The sizes of all parts.

    `small`: the number of jobs by their number of maps. `sticky`: the numbers of concurrent jobs, each of `sticky_maps`
    maps. `waits`: in seconds, for `wait_jobs` jobs. `bins`: maps of a job and the number of such jobs. `at_once`: the
    number of jobs at a time, in parts that keep it fixed. `brief` leaves out the variants of the Yahoo traces.
    """

    about: str
    seeds: int
    ec2: SlotCluster
    private: SlotCluster
    small: Mapping[int, int]
    sticky: Sequence[int]
    sticky_maps: int
    waits: Sequence[float]
    wait_jobs: int
    at_once: int
    bins: Sequence[tuple[int, int]]
    brief: bool = False


FULL = DelayScale(
    about=(
        "The paper's clusters (table 1) and job sizes. Every run is by the planner itself; but for 'ours' it sees "
        "slots, and only the machines that report at the time, as Hadoop's scheduler does."
    ),
    seeds=2,
    ec2=SlotCluster(100, 4),
    private=SlotCluster(100, 6, racks=4),
    small={3: 600, 10: 300, 100: 60},
    sticky=(5, 10, 20, 50),
    sticky_maps=180,
    waits=(0, 1, 2, 3, 5, 10),
    wait_jobs=200,
    at_once=50,
    bins=BINS,
)
QUICK = DelayScale(
    about="A small form, which shows that everything works; its numbers are not to be quoted.",
    seeds=1,
    ec2=SlotCluster(20, 4),
    private=SlotCluster(20, 6, racks=4),
    small={3: 40, 10: 20, 100: 10},
    sticky=(10, 50),
    sticky_maps=12,
    waits=(0, 1, 5),
    wait_jobs=30,
    at_once=10,
    bins=((1, 8), (2, 4), (10, 4), (50, 2), (200, 1)),
    brief=True,
)

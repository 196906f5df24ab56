"""What can be set, section by section: types, bounds and defaults."""

from typing import Annotated, Literal

import msgspec

from extender.cluster.model import CapacityRule
from extender.cluster.queues import Queue
from extender.cluster.resources import io_amounts

API_VERSION = "dovetail.dev/v1alpha1"
KIND = "DovetailConfiguration"

Rates = dict[str, str | int | float]
Namespaces = tuple[Annotated[str, msgspec.Meta(min_length=1)], ...] | dict[str, str] | None
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class ServerSettings(_Section, frozen=True):
    """How the extender listens."""

    address: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 10351
    threads: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    max_body_bytes: Annotated[int, msgspec.Meta(ge=1_024, le=2**31 - 1)] = 10 * 2**20
    keep_alive_seconds: Annotated[int, msgspec.Meta(ge=91, le=86_400)] = 120
    drain_seconds: Annotated[float, msgspec.Meta(ge=0, le=300)] = 5.0


class PlacementSettings(_Section, frozen=True):
    """How nodes are ranked, who chooses, and how pods in flight count: those whose node is not known yet."""

    rule: Literal["dot", "cosine", "l2-norm-diff", "l2-norm-ratio"] = "cosine"
    shape_step: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.05
    chosen_by: Literal["filter", "kube-scheduler"] = "kube-scheduler"
    in_flight_seconds: _Seconds = 15.0
    wait_milliseconds: Annotated[int, msgspec.Meta(ge=0, le=4_000)] = 500


class CapacitySetting(_Section, frozen=True):
    """Disk and network rates of the nodes that carry these labels and no annotation."""

    node_selector: dict[str, str]
    capacity: Rates


class ClusterSettings(_Section, frozen=True):
    """What is known of the cluster beside what it says itself."""

    capacities: tuple[CapacitySetting, ...] = ()
    stale_seconds: _Seconds = 60.0


class LeaseSettings(_Section, frozen=True):
    """The Lease that one replica of `dovetail control` leads by; another leads `seconds` after its last renewal."""

    name: str = "dovetail-control"
    namespace: str = "dovetail-system"
    seconds: Annotated[float, msgspec.Meta(ge=1, le=3_600)] = 15.0
    renew_seconds: Annotated[float, msgspec.Meta(gt=0, le=3_600)] = 10.0
    retry_seconds: Annotated[float, msgspec.Meta(gt=0, le=3_600)] = 2.0


class ControlSettings(_Section, frozen=True):
    """How held pods are released. `scale_up_after_seconds` 0: never."""

    schedulers: tuple[str, ...] = ("dovetail",)
    plan_milliseconds: Annotated[int, msgspec.Meta(ge=1, le=60_000)] = 50
    plan_seconds: Annotated[float, msgspec.Meta(gt=0, le=600)] = 3.0
    unbound_pods: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 64
    writers: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    assume_seconds: _Seconds = 15.0
    scale_up_after_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 0.0
    held_event_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 10.0
    lease: LeaseSettings = LeaseSettings()


class PolicySettings(_Section, frozen=True):
    """Whose turn it is (planner.Policy)."""

    rule: Literal["dot", "cosine", "l2-norm-diff", "l2-norm-ratio", "ffd-prod", "ffd-sum"] = "dot"
    srtf: Annotated[float, msgspec.Meta(ge=0, le=1_000)] = 1.0
    rank: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    sharing: Literal["drf", "slots"] = "drf"
    kappa: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    fairness: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.25
    barrier: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.9
    starved_after_seconds: _Seconds = 120.0
    reservable: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.05


class LocalitySettings(_Section, frozen=True):
    """How long a job is passed over until it may start farther from its input (Delay Scheduling).

    `levels` are labels of nodes, the smallest groups first; `wait_seconds` are for the node itself, then each level.
    `target`: the part of a job's tasks near their input for which `control` computes the first wait, at most
    `max_wait_seconds`; 0: it does not. `long_task_seconds` 0: long tasks are not kept apart.
    """

    levels: tuple[Annotated[str, msgspec.Meta(min_length=1)], ...] = ()
    wait_seconds: tuple[Annotated[float, msgspec.Meta(ge=0, le=86_400)], ...] = ()
    target: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    max_wait_seconds: _Seconds = 30.0
    remote_penalty: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.1
    long_task_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 0.0


class QueueSetting(_Section, frozen=True):
    """One queue: its weight among its siblings, the part of the cluster it is sure of, and who goes first inside.

    `namespaces` says who may use it, by their names or by labels that they carry; None: all. `opportunistic` says
    whether its pods may run on what others do not use, where neither they nor their namespace do.
    """

    name: Annotated[str, msgspec.Meta(min_length=1)]
    weight: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 1.0
    minimum_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    policy: Literal["fair", "fifo"] = "fair"
    parent: str = ""
    namespaces: Namespaces = None
    opportunistic: Literal["", "allowed", "never"] = ""


class ReclaimSettings(_Section, frozen=True):
    """When pods of queues above their share are evicted for one that has been below its own for so long; 0: never."""

    fair_share_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 0.0
    minimum_share_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 0.0
    evictions_per_minute: Annotated[float, msgspec.Meta(gt=0, le=6_000)] = 10.0


class UsageAccess(_Section, frozen=True):
    """How Prometheus is told who asks. Files are read again when they change; an empty name: there is none."""

    token_file: str = ""
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    headers: dict[str, str] = {}


class UsageSettings(_Section, frozen=True):
    """Where the use of nodes and pods is read. Without `url` and `metrics_api` nothing is.

    `node_labels` are the labels of series that may say which node they are of, the surest first. `node_queries` and
    `pod_queries` replace PromQL templates by the dimension, "" leaves one out; `time` is for the times of the samples,
    `cpu-pressure` (of pods) for how long they wait for CPU. With `avoid_load` the plan leaves room for what nodes use
    besides their pods.
    """

    url: str = ""
    metrics_api: bool = False
    interval_seconds: Annotated[float, msgspec.Meta(ge=1, le=600)] = 15.0
    window_seconds: Annotated[int, msgspec.Meta(ge=2, le=3_600)] = 60
    stale_seconds: _Seconds = 90.0
    node_labels: tuple[Annotated[str, msgspec.Meta(min_length=1)], ...] = ("node", "instance")
    matchers: str = ""
    node_queries: dict[str, str] = {}
    pod_queries: dict[str, str] = {}
    access: UsageAccess = UsageAccess()
    avoid_load: bool = False

    @property
    def on(self) -> bool:
        """Whether anything is read."""
        return bool(self.url) or self.metrics_api


class LogSettings(_Section, frozen=True):
    """How it logs."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["json", "text"] = "json"


class OpportunisticSettings(_Section, frozen=True):
    """Running pods on what others reserved and do not use. Off unless `enabled`; needs `usage`.

    `threshold` is T_alloc, up to which a node's use may rise by it, or `auto`: up to its predicted peak, with a margin
    that is led by `eviction_budget`, evictions of each such pod in an hour. `evict_at` are T_preempt. What CPU is short
    of says its use, or how long regular pods wait for it (`evict_by`). With `dry_run` evictions are counted and not
    made.
    """

    enabled: bool = False
    threshold: Annotated[float, msgspec.Meta(gt=0, le=1)] | Literal["auto"] = 0.8
    eviction_budget: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.01
    evict_by: Literal["use", "pressure"] = "use"
    evict_at_cpu: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.99
    evict_at_pressure: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.1
    evict_at_io: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.95
    evict_at_memory: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.95
    evict_after_samples: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    evictions_per_minute: Annotated[float, msgspec.Meta(ge=1, le=1e6)] = 600.0
    max_queue_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    max_job_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    dry_run: bool = False

    @property
    def by_pressure(self) -> bool:
        """Whether anybody is evicted where regular pods wait for CPU."""
        return self.enabled and self.evict_by == "pressure"


class Settings(_Section, frozen=True):
    """Everything that can be set."""

    api_version: Literal["dovetail.dev/v1alpha1"] = "dovetail.dev/v1alpha1"
    kind: Literal["DovetailConfiguration"] = "DovetailConfiguration"
    server: ServerSettings = ServerSettings()
    placement: PlacementSettings = PlacementSettings()
    cluster: ClusterSettings = ClusterSettings()
    order: Literal["auto", "gates", "filter"] = "auto"
    control: ControlSettings = ControlSettings()
    policy: PolicySettings = PolicySettings()
    locality: LocalitySettings = LocalitySettings()
    queues: tuple[QueueSetting, ...] = ()
    undeclared_weight: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 1.0
    reclaim: ReclaimSettings = ReclaimSettings()
    usage: UsageSettings = UsageSettings()
    opportunistic: OpportunisticSettings = OpportunisticSettings()
    log: LogSettings = LogSettings()

    @property
    def asks_filter(self) -> bool:
        """Whether `filter` refuses pods without our gate until their turn."""
        return self.order != "gates"

    @property
    def hold_name(self) -> str:
        """The name of the Hold that says whether new pods are held: there is one for each Lease."""
        return f"{self.control.lease.namespace}.{self.control.lease.name}"

    def capacity_rules(self) -> tuple[CapacityRule, ...]:
        """Return the capacities by node selector."""
        return tuple(CapacityRule(rule.node_selector, io_amounts(rule.capacity)) for rule in self.cluster.capacities)

    def declared_queues(self) -> tuple[Queue, ...]:
        """Return the queues that settings declare."""
        return tuple(
            Queue(
                queue.name,
                queue.weight,
                queue.minimum_share,
                queue.policy == "fifo",
                queue.parent,
                queue.namespaces,
                queue.opportunistic,
            )
            for queue in self.queues
        )

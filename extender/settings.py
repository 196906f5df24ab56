"""The settings file: one strict YAML document, read once. A wrong key or value is named with what is accepted."""

import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import yaml

from extender.cluster.model import CapacityRule
from extender.cluster.queues import Queue, mistakes_of
from extender.cluster.resources import IO_DIMENSIONS, io_amounts
from extender.errors import BadQuantity, SettingsError

API_VERSION = "dovetail.dev/v1alpha1"
KIND = "DovetailConfiguration"

_ACCEPTED = "accepted: "
_Rates = dict[str, str | int | float]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class Server(_Section, frozen=True):
    """How the extender listens."""

    address: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 10351
    threads: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    max_body_bytes: Annotated[int, msgspec.Meta(ge=1_024, le=2**31 - 1)] = 64 * 2**20
    keep_alive_seconds: Annotated[int, msgspec.Meta(ge=91, le=86_400)] = 120
    drain_seconds: Annotated[float, msgspec.Meta(ge=0, le=300)] = 5.0


class PlacementSettings(_Section, frozen=True):
    """How nodes are ranked, and how pods count whose node is not known yet."""

    rule: Literal["dot", "cosine", "l2-norm-diff", "l2-norm-ratio"] = "cosine"
    shape_step: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.05
    in_flight_seconds: _Seconds = 15.0
    wait_milliseconds: Annotated[int, msgspec.Meta(ge=0, le=4_000)] = 500


class CapacitySetting(_Section, frozen=True):
    """Disk and network rates of the nodes that carry these labels and no annotation."""

    node_selector: dict[str, str]
    capacity: _Rates


class ClusterSettings(_Section, frozen=True):
    """What is known of the cluster beside what it says itself."""

    capacities: tuple[CapacitySetting, ...] = ()
    stale_seconds: _Seconds = 60.0


class LeaseSettings(_Section, frozen=True):
    """By which one replica of `dovetail control` leads; another takes over `seconds` after the last renewal."""

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
    sharing: Literal["drf", "slots", "deficit"] = "drf"
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
    """One queue: its weight among its siblings, the part of the cluster it is sure of, and who goes first inside."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    weight: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 1.0
    minimum_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    policy: Literal["fair", "fifo"] = "fair"
    parent: str = ""


class ReclaimSettings(_Section, frozen=True):
    """When pods of queues above their share are evicted for one that has been below its own for so long; 0: never."""

    fair_share_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 0.0
    minimum_share_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 0.0
    evictions_per_minute: Annotated[float, msgspec.Meta(gt=0, le=6_000)] = 10.0


class LogSettings(_Section, frozen=True):
    """How it logs."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["json", "text"] = "json"


class Settings(_Section, frozen=True):
    """Everything that can be set."""

    api_version: Literal["dovetail.dev/v1alpha1"] = "dovetail.dev/v1alpha1"
    kind: Literal["DovetailConfiguration"] = "DovetailConfiguration"
    server: Server = Server()
    placement: PlacementSettings = PlacementSettings()
    cluster: ClusterSettings = ClusterSettings()
    order: Literal["gates", "filter"] = "gates"
    control: ControlSettings = ControlSettings()
    policy: PolicySettings = PolicySettings()
    locality: LocalitySettings = LocalitySettings()
    queues: tuple[QueueSetting, ...] = ()
    reclaim: ReclaimSettings = ReclaimSettings()
    log: LogSettings = LogSettings()

    def capacity_rules(self) -> tuple[CapacityRule, ...]:
        """Return the capacities by node selector."""
        return tuple(CapacityRule(it.node_selector, io_amounts(it.capacity)) for it in self.cluster.capacities)

    def declared_queues(self) -> tuple[Queue, ...]:
        """Return the queues that settings declare."""
        return tuple(Queue(it.name, it.weight, it.minimum_share, it.policy == "fifo", it.parent) for it in self.queues)


def load(path: Path) -> Settings:
    """Read a settings file. Raises SettingsError, one line per mistake."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"{path} cannot be read as YAML: {error}") from None
    return read(text, str(path))


def read(text: str, name: str) -> Settings:
    """Return the settings that the text of a file states. Raises SettingsError, one line per mistake."""
    try:
        document = yaml.load(text, Loader=_NoDuplicates)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError(f"{name} cannot be read as YAML: {error}") from None
    try:
        return parse(document)
    except SettingsError as error:
        raise SettingsError("\n".join(f"{name}: {line}" for line in str(error).splitlines())) from None


def parse(document: object) -> Settings:
    """Return the settings that a YAML document states. Raises SettingsError, one line per mistake."""
    if not isinstance(document, dict):
        raise SettingsError(f"{document!r} is not a mapping; accepted: apiVersion: {API_VERSION}, kind: {KIND}, ...")
    missing = [
        f"{key}: missing; accepted: {accepted}"
        for key, accepted in (("apiVersion", API_VERSION), ("kind", KIND))
        if key not in document
    ]
    mistakes = missing + list(_mistakes(document, Settings, ""))
    if mistakes:
        raise SettingsError("\n".join(mistakes))
    found = msgspec.convert(document, Settings)
    if contradictions := list(_contradictions(found)):
        raise SettingsError("\n".join(contradictions))
    return found


def defaults() -> dict[str, Any]:
    """Return the default settings as the document that would state them."""
    built: dict[str, Any] = msgspec.to_builtins(Settings())
    return built


def _mistakes(value: object, section: type[msgspec.Struct], path: str) -> Iterator[str]:
    """Yield what is wrong in one section, key by key."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(section)}
    if not isinstance(value, dict):
        yield f"{path}: {_as_yaml(value)}: expected a mapping; accepted: {', '.join(fields)}"
        return
    prefix = f"{path}." if path else ""
    types = get_type_hints(section, include_extras=True)
    for key, child in value.items():
        if key in fields:
            yield from _wrong_value(child, types[fields[key].name], f"{prefix}{key}")
        else:
            yield f"{prefix}{key}: {_as_yaml(child)}: there is no such setting; accepted: {', '.join(fields)}"
    for key in (key for key, field in fields.items() if field.required and key not in value):
        yield f"{prefix}{key}: missing; accepted: {'a name' if key == 'name' else 'a mapping'}"


def _contradictions(found: Settings) -> Iterator[str]:
    """Yield what is wrong between values that are right by themselves."""
    yield from (f"queues: {mistake}" for mistake in mistakes_of(found.declared_queues()))
    lease = found.control.lease
    if not lease.retry_seconds < lease.renew_seconds < lease.seconds:
        yield (
            f"control.lease: retrySeconds {lease.retry_seconds:g}, renewSeconds {lease.renew_seconds:g}, seconds "
            f"{lease.seconds:g}; accepted: retrySeconds below renewSeconds below seconds"
        )
    near = found.locality
    if len(near.wait_seconds) > len(near.levels) + 1:
        yield (
            f"locality.waitSeconds: {len(near.wait_seconds)} waits; accepted: one for the node and one for each of "
            f"locality.levels, so at most {len(near.levels) + 1}"
        )
    if doubled := sorted({level for level in near.levels if near.levels.count(level) > 1}):
        yield f"locality.levels: {doubled[0]!r} stands twice; accepted: each label once, the smallest groups first"
    if near.target and not near.wait_seconds:
        yield (
            f"locality.target: {near.target:g} without locality.waitSeconds; accepted: with at least one wait, the "
            "first of which holds until the rate is measured"
        )
    if near.target and found.order == "filter":
        yield (
            f"locality.target: {near.target:g} with order: filter; accepted: 0, since the extender plans by itself and "
            "measures nothing; set locality.waitSeconds to what `dovetail locality --from-cluster "
            f"--target={near.target:g}` says"
        )


def _items(of: object) -> type[msgspec.Struct] | None:
    """Return what a list of sections is of; None for anything else."""
    item = get_args(of)[0] if get_origin(of) is tuple else None
    return item if isinstance(item, type) and issubclass(item, msgspec.Struct) else None


def _wrong_value(value: object, of: object, path: str) -> Iterator[str]:
    if isinstance(of, type) and issubclass(of, msgspec.Struct):
        yield from _mistakes(value, of, path)
    elif (section := _items(of)) is not None and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _mistakes(item, section, f"{path}[{number}]")
    else:
        try:
            msgspec.convert(value, of)
        except msgspec.ValidationError as error:
            yield f"{path}: {_as_yaml(value)}: {_accepted(of) or _plain(error)}"
        else:
            yield from _senseless(value, path)


def _senseless(value: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - whatever the file holds there
    """Yield what is wrong with a value of the right type: no address, no rate."""
    try:
        if path == "server.address":
            ipaddress.ip_address(value)
        elif path.endswith("].capacity"):
            io_amounts(value)
    except BadQuantity as error:
        yield f"{path}: {error}"
    except ValueError:
        yield f"{path}: {_as_yaml(value)}: accepted: an IP address, such as 127.0.0.1, 0.0.0.0 or ::"


def _accepted(of: object) -> str:
    """Return what a setting accepts, for those with words or bounds; empty for the others."""
    if of == dict[str, str]:
        return "accepted: a mapping of labels to strings (quote numbers, true and false)"
    if (section := _items(of)) is not None:
        keys = ", ".join(f"{field.encode_name}: ..." for field in msgspec.structs.fields(section))
        return f"accepted: a list of {{{keys}}}"
    if get_origin(of) is tuple:
        return _accepted_list(get_args(of)[0])
    if of == _Rates:
        return f"accepted: a mapping of {', '.join(IO_DIMENSIONS)} to quantities"
    if get_origin(of) is Literal:
        return f"accepted: {', '.join(get_args(of))}"
    if get_origin(of) is not Annotated:
        return ""
    kind, meta = get_args(of)
    if kind is str:
        return "accepted: a string that is not empty"
    number = "a whole number" if kind is int else "a number"
    low = f"{meta.ge} to" if meta.ge is not None else f"above {meta.gt}, up to"
    return f"accepted: {number}, {low} {meta.le if meta.le is not None else f'below {meta.lt}'}"


def _accepted_list(item: object) -> str:
    return f"accepted: a list{' of strings' if item is str else f', each {_accepted(item).removeprefix(_ACCEPTED)}'}"


def _plain(error: msgspec.ValidationError) -> str:
    """Return msgspec's "Expected `object`, got `int`" in YAML's words."""
    text = str(error).partition(" - at ")[0].replace("`", "")
    for theirs, ours in (("object", "a mapping"), ("array", "a list"), ("str", "a string"), ("int", "a whole number")):
        text = text.replace(theirs, ours)
    return text[0].lower() + text[1:]


def _as_yaml(value: object) -> str:
    """Return a value as the file may have stated it, on one line."""
    return yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("\n...\n").rstrip("\n")


class _NoDuplicates(yaml.SafeLoader):
    """Refuses a key that stands twice, where YAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: list[object] = []
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    None, None, "merge keys (<<) are not accepted", key_node.start_mark
                )
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands twice", key_node.start_mark)
            seen.append(key)
        return super().construct_mapping(node, deep)

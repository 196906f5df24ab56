"""The settings file: one strict YAML document, read once. A wrong key or value is named with what is accepted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import yaml

from extender.cluster.model import CapacityRule
from extender.cluster.resources import io_amounts
from extender.errors import BadQuantity, SettingsError

API_VERSION = "dovetail.dev/v1alpha1"
KIND = "DovetailConfiguration"

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
    capacity: dict[str, str | int | float]


class ClusterSettings(_Section, frozen=True):
    """What is known of the cluster beside what it says itself."""

    capacities: tuple[CapacitySetting, ...] = ()
    stale_seconds: _Seconds = 60.0


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
    log: LogSettings = LogSettings()

    def capacity_rules(self) -> tuple[CapacityRule, ...]:
        """Return the capacities by node selector. Raises SettingsError for a wrong dimension or quantity."""
        return tuple(_rule(n, setting) for n, setting in enumerate(self.cluster.capacities))


def load(path: Path) -> Settings:
    """Read a settings file. Raises SettingsError, one line per mistake."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_NoDuplicates)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not YAML: {error}") from None
    try:
        return parse(document)
    except SettingsError as error:
        raise SettingsError("\n".join(f"{path}: {line}" for line in str(error).splitlines())) from None


def parse(document: object) -> Settings:
    """Return the settings that a YAML document states. Raises SettingsError, one line per mistake."""
    if not isinstance(document, dict):
        raise SettingsError(f"{document!r} is not a mapping; accepted: apiVersion: {API_VERSION}, kind: {KIND}, ...")
    for key, accepted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(key) != accepted:
            raise SettingsError(f"{key}: {document.get(key)!r} is not known; accepted: {accepted}")
    mistakes = list(_mistakes(document, Settings, ""))
    if mistakes:
        raise SettingsError("\n".join(mistakes))
    settings = msgspec.convert(document, Settings)
    settings.capacity_rules()
    return settings


def defaults() -> dict[str, Any]:
    """Return the default settings as the document that would state them."""
    built: dict[str, Any] = msgspec.to_builtins(Settings())
    return built


def _rule(number: int, setting: CapacitySetting) -> CapacityRule:
    try:
        return CapacityRule(setting.node_selector, io_amounts(setting.capacity))
    except BadQuantity as error:
        raise SettingsError(f"cluster.capacities[{number}].capacity: {error}") from None


def _mistakes(value: object, section: type[msgspec.Struct], path: str) -> Iterator[str]:
    """Yield what is wrong in one section, key by key."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(section)}
    if not isinstance(value, dict):
        yield f"{path}: {value!r}: expected a mapping; accepted: {', '.join(fields)}"
        return
    prefix = f"{path}." if path else ""
    types = get_type_hints(section, include_extras=True)
    for key, child in value.items():
        if key in fields:
            yield from _wrong_value(child, types[fields[key].name], f"{prefix}{key}")
        else:
            yield f"{prefix}{key}: {child!r}: there is no such setting; accepted: {', '.join(fields)}"
    for key in (key for key, field in fields.items() if field.required and key not in value):
        yield f"{prefix}{key}: missing; accepted: a mapping"


def _wrong_value(value: object, of: object, path: str) -> Iterator[str]:
    if isinstance(of, type) and issubclass(of, msgspec.Struct):
        yield from _mistakes(value, of, path)
    elif of == tuple[CapacitySetting, ...] and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _mistakes(item, CapacitySetting, f"{path}[{number}]")
    else:
        try:
            msgspec.convert(value, of)
        except msgspec.ValidationError as error:
            wrong = str(error).partition(" - at ")[0]
            words = f"; accepted: {', '.join(get_args(of))}" if get_origin(of) is Literal else ""
            yield f"{path}: {value!r}: {wrong[0].lower()}{wrong[1:]}{words}"


class _NoDuplicates(yaml.SafeLoader):
    """Refuses a key that stands twice, where YAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)

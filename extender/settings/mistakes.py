"""What is wrong in a settings document: key by key, value by value, each with what is accepted."""

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import yaml

from extender.cluster.queues import mistakes_of
from extender.cluster.resources import DIMENSIONS, IO_DIMENSIONS, io_amounts
from extender.errors import BadQuantity
from extender.settings.sections import Namespaces, Rates, Settings, UsageAccess, UsageSettings

_LABEL = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
"""A key of a label: perhaps a domain, then a name."""

_URL = re.compile(r"https?://[^\s?#@]+")
_LOGIN = re.compile(r"//[^/@]*@")
_LOGIN_SECTION = "usage.access"
_LONGEST_SHOWN = 200
_OBJECT = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""A name of an object of Kubernetes."""

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

_SERIES_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def wrong_in(value: object, section: type[msgspec.Struct], path: str) -> Iterator[str]:
    """Yield what is wrong in one section, key by key."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(section)}
    if not isinstance(value, dict):
        yield f"{path}: {_given(value, path)}; accepted: a mapping of {', '.join(fields)}"
        return
    prefix = f"{path}." if path else ""
    types = get_type_hints(section, include_extras=True)
    for key, child in value.items():
        if key in fields:
            yield from _wrong_value(child, types[fields[key].name], f"{prefix}{key}")
        else:
            given = _given(child, f"{prefix}{key}")
            yield f"{prefix}{key}: {given}; there is no such setting; accepted: {', '.join(fields)}"
    for key in (key for key, field in fields.items() if field.required and key not in value):
        yield f"{prefix}{key}: missing; accepted: {'a name' if key == 'name' else 'a mapping'}"


def _items(kind: object) -> type[msgspec.Struct] | None:
    """Return what a list of sections is of; None for anything else."""
    item = get_args(kind)[0] if get_origin(kind) is tuple else None
    return item if isinstance(item, type) and issubclass(item, msgspec.Struct) else None


def _wrong_value(value: object, kind: object, path: str) -> Iterator[str]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from wrong_in(value, kind, path)
    elif (section := _items(kind)) is not None and isinstance(value, list):
        for number, item in enumerate(value):
            yield from wrong_in(item, section, f"{path}[{number}]")
    else:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            yield f"{path}: {_given(value, path)}; accepted: {_accepted(kind)}"
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
        yield f"{path}: {in_short(value)}; accepted: an IP address, such as 127.0.0.1, 0.0.0.0 or ::"


def _accepted(kind: object) -> str:
    """Return what a setting accepts, in YAML's words."""
    if kind is bool:
        return "true or false"
    if kind is str:
        return "a string"
    if kind == dict[str, str]:
        return "a mapping of names to strings (quote numbers, true and false)"
    if _is_union_with_words(kind):
        number, words = get_args(kind)
        return f"{_accepted(number)}, or {', '.join(get_args(words))}"
    if kind == Namespaces:
        return "a list of names of namespaces, or a mapping of labels that they carry to strings"
    if (section := _items(kind)) is not None:
        keys = ", ".join(f"{field.encode_name}: ..." for field in msgspec.structs.fields(section))
        return f"a list of {{{keys}}}"
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return "a list of strings" if item is str else f"a list, each {_accepted(item)}"
    if kind == Rates:
        return f"a mapping of {', '.join(IO_DIMENSIONS)} to quantities"
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    plain, bounds = get_args(kind)
    if plain is str:
        return "a string that is not empty"
    number = "a whole number" if plain is int else "a number"
    low = f"{bounds.ge} to" if bounds.ge is not None else f"above {bounds.gt}, up to"
    return f"{number}, {low} {bounds.le if bounds.le is not None else f'below {bounds.lt}'}"


def _is_union_with_words(kind: object) -> bool:
    """Return whether a number or one of some words is accepted."""
    members = get_args(kind)
    return len(members) == 2 and get_origin(members[0]) is Annotated and get_origin(members[1]) is Literal


def _given(value: object, path: str) -> str:
    """Return a value as an error shows it: what may be a secret is left out."""
    return "(not shown)" if path.startswith(_LOGIN_SECTION) else _without_login(in_short(value))


def _without_login(text: str) -> str:
    """Return a text without the names and passwords of URLs."""
    return _LOGIN.sub("//(not shown)@", text)


def in_short(value: object) -> str:
    """Return a value as the file may have stated it, on one line; of a long one the beginning."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("\n...\n").rstrip("\n")
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def contradictions(settings: Settings) -> Iterator[str]:
    """Yield what is wrong between values that are right by themselves."""
    yield from (f"queues: {mistake}" for mistake in mistakes_of(settings.declared_queues()))
    if not settings.control.schedulers or "" in settings.control.schedulers:
        names = list(settings.control.schedulers)
        yield f"control.schedulers: {names}; accepted: one name of a scheduler, or more"
    lease = settings.control.lease
    for key, name in (("name", lease.name), ("namespace", lease.namespace)):
        if not _OBJECT.fullmatch(name):
            yield f"control.lease.{key}: {name!r}; accepted: lower case letters, digits, - and .: dovetail-control"
    if not lease.retry_seconds < lease.renew_seconds < lease.seconds:
        yield (
            f"control.lease: retrySeconds {lease.retry_seconds:g}, renewSeconds {lease.renew_seconds:g}, seconds "
            f"{lease.seconds:g}; accepted: retrySeconds below renewSeconds below seconds"
        )
    locality = settings.locality
    if len(locality.wait_seconds) > len(locality.levels) + 1:
        yield (
            f"locality.waitSeconds: {len(locality.wait_seconds)} waits; accepted: one for the node and one for each of "
            f"locality.levels, so at most {len(locality.levels) + 1}"
        )
    for label in locality.levels:
        if not _LABEL.fullmatch(label):
            yield f"locality.levels: {label!r} cannot be a label; accepted: such as topology.kubernetes.io/zone"
    if doubled := sorted(level for level, count in Counter(locality.levels).items() if count > 1):
        yield f"locality.levels: {doubled[0]!r} stands twice; accepted: each label once, the smallest groups first"
    if locality.target and not locality.wait_seconds:
        yield (
            f"locality.target: {locality.target:g} without locality.waitSeconds; accepted: with at least one wait, the "
            "first of which holds until the rate is measured"
        )
    if locality.target and settings.order == "filter":
        yield (
            f"locality.target: {locality.target:g} with order: filter; accepted: 0, since the extender plans by itself "
            "and measures nothing; set locality.waitSeconds to what `dovetail locality --from-cluster "
            f"--target={locality.target:g}` says"
        )
    yield from _in_usage(settings.usage)
    yield from _in_opportunistic(settings)


def _in_opportunistic(settings: Settings) -> Iterator[str]:
    """Yield what is wrong with running pods on what others do not use."""
    opportunistic = settings.opportunistic
    if not opportunistic.enabled:
        return
    if not settings.usage.on:
        yield "opportunistic.enabled: true without usage; accepted: with usage.url or usage.metricsApi"
    if settings.order == "filter":
        yield "opportunistic.enabled: true with order: filter; accepted: with order: auto or gates"
    if opportunistic.by_pressure and settings.usage.metrics_api:
        yield "opportunistic.evictBy: pressure with usage.metricsApi; accepted: with usage.url, which can know it"
    if opportunistic.threshold == "auto":
        if settings.usage.metrics_api:
            yield (
                "opportunistic.threshold: auto with usage.metricsApi, which keeps no history; accepted: auto with "
                "usage.url, or a number"
            )
    else:
        limits = {"evictAtMemory": opportunistic.evict_at_memory, "evictAtIo": opportunistic.evict_at_io}
        if not opportunistic.by_pressure:
            limits["evictAtCpu"] = opportunistic.evict_at_cpu
        lowest = min(limits, key=lambda key: limits[key])
        if opportunistic.threshold > limits[lowest]:
            yield (
                f"opportunistic.threshold: {opportunistic.threshold:g} above {lowest} {limits[lowest]:g}; accepted: at "
                "most that, else pods would be started to be evicted"
            )


def _in_usage(usage: UsageSettings) -> Iterator[str]:
    """Yield what is wrong with where use is read, and by what."""
    if usage.url and not _URL.fullmatch(usage.url):
        yield f"usage.url: {_without_login(usage.url)!r}; accepted: such as http://prometheus.monitoring:9090 or https://host/prefix"
    if usage.url and usage.metrics_api:
        yield "usage.metricsApi: true with usage.url; accepted: one of them"
    if usage.metrics_api and not usage.url:
        asked = {
            "matchers": usage.matchers,
            "nodeQueries": usage.node_queries,
            "podQueries": usage.pod_queries,
            "access": usage.access != UsageAccess(),
        }
        for key in (key for key, value in asked.items() if value):
            yield f"usage.{key}: it counts for nothing with usage.metricsApi; accepted: with usage.url"
    for label in usage.node_labels:
        if not _SERIES_LABEL.fullmatch(label):
            yield f"usage.nodeLabels: {label!r} cannot be a label of a series; accepted: such as node or instance"
    of_nodes = (*DIMENSIONS, "time")
    for key, queries, names in (
        ("nodeQueries", usage.node_queries, of_nodes),
        ("podQueries", usage.pod_queries, (*of_nodes, "cpu-pressure")),
    ):
        for name in queries.keys() - set(names):
            yield f"usage.{key}: {name!r} is no dimension; accepted: {', '.join(names)}"
    for key, queries, needed in (
        ("nodeQueries", usage.node_queries, ("cpu", "memory", "time")),
        ("podQueries", usage.pod_queries, ("time", "cpu-pressure")),
    ):
        for name in needed:
            if queries.get(name) == "":
                yield f"usage.{key}.{name}: empty; accepted: a PromQL template"
    yield from _in_access(usage.access)


def _in_access(access: UsageAccess) -> Iterator[str]:
    """Yield what is wrong with how Prometheus is told who asks; values may be secrets, so none is shown."""
    if access.token_file and access.username:
        yield "usage.access: tokenFile and username; accepted: one of them"
    if any(name.lower() == "authorization" for name in access.headers) and (access.token_file or access.username):
        yield "usage.access: headers.authorization with tokenFile or username; accepted: one of them"
    if access.password_file and not access.username:
        yield "usage.access: passwordFile without username; accepted: both"
    sent = {"username": access.username, **{f"headers.{name}": text for name, text in access.headers.items()}}
    for key, text in sent.items():
        if not (text.isascii() and text.isprintable()):
            yield f"{_LOGIN_SECTION}.{key}: (not shown); accepted: ASCII text on one line"
    for name in access.headers:
        if not _HEADER.fullmatch(name):
            yield f"usage.access.headers: {name!r} cannot be a header; accepted: such as X-Scope-OrgID"
    if bool(access.cert_file) != bool(access.key_file):
        yield "usage.access: certFile and keyFile; accepted: both or neither"

"""The reference of the settings file: keys, defaults and bounds from the code, one sentence each from here."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from extender.settings import Settings

_HEAD = """# Settings

Written by `python -m docs.generate` from `extender/settings/sections.py`: do not edit it here.

Dovetail reads one YAML file, once, at its start: `dovetail serve --config FILE`, `dovetail control --config FILE`. In the chart,
`config:` has the same keys. `dovetail validate-config FILE` names every mistake, its value, and what is accepted.

```yaml
apiVersion: dovetail.dev/v1alpha1
kind: DovetailConfiguration
queues:
  - {name: research, weight: 3, minimumShare: 0.25}
```
"""

_TITLES = {
    "server": "How `serve` listens.",
    "placement": "How nodes are ranked for a pod, and how a pod counts while its node is not known yet.",
    "cluster": "What the cluster does not say of itself.",
    "control": "How `control` releases pods.",
    "policy": "Whose turn it is inside a queue ([the planner](../concepts/planner.md)).",
    "locality": "Waiting for a node near the input ([locality](../guide/locality.md)). Off unless set.",
    "queues": "A list of queues ([queues and shares](../guide/queues.md)). Each entry has these keys:",
    "reclaim": "Evictions for a queue below its share ([reclaim](../guide/queues.md#reclaim-when-waiting-is-not-enough)).",
    "log": "Logs of all processes.",
}

_SENTENCES = {
    "order": "`gates`: pods wait behind our gate until their turn. `filter`: `filter` refuses pods until their turn",
    "undeclaredWeight": "the weight of all queues together that no setting declares",
    "server.address": "where it listens. The chart sets `0.0.0.0`, for the kubelet's probes",
    "server.port": "the port",
    "server.threads": "requests answered at a time",
    "server.maxBodyBytes": "a larger request gets 413. Raise it for `nodeCacheCapable: false`",
    "server.keepAliveSeconds": "how long an idle connection stays open. kube-scheduler closes its own after 90 s",
    "server.drainSeconds": "after SIGTERM: how long requests that have begun may take",
    "placement.rule": "the ranking rule ([placement](../concepts/placement.md))",
    "placement.shapeStep": "scores closer than this are equal; then the fuller node wins. Set 0 with `dot` and `l2-norm-ratio`",
    "placement.inFlightSeconds": "how long a pod may count on every node that it may have got ([in flight](../concepts/in-flight.md))",
    "placement.waitMilliseconds": "how long `filter` waits for the binding of such a pod, where only that stands in the way",
    "cluster.capacities": "`[{nodeSelector: {label: value}, capacity: {network-in: 1250M}}]`; the first that matches counts",
    "cluster.staleSeconds": "`/readyz` fails when a watch has been down for so long",
    "control.schedulers": "whose pods count for their queues. The chart follows its mode",
    "control.planMilliseconds": "at most one plan in this time",
    "control.planSeconds": "at least one plan in this time",
    "control.unboundPods": "how many pods may be released and not yet bound",
    "control.writers": "threads that write to the API server",
    "control.assumeSeconds": "how long a write may take to show in the watch",
    "control.scaleUpAfterSeconds": "when a pod that needs a new node is released, so that an autoscaler sees it; 0: never",
    "control.heldEventSeconds": "a held pod gets an event after so long",
    "control.lease.name": "the Lease by which one replica leads",
    "control.lease.namespace": "its namespace. The chart sets the release's",
    "control.lease.seconds": "another replica takes over so long after the last renewal that it saw",
    "control.lease.renewSeconds": "how long a leader is sure of it after a renewal",
    "control.lease.retrySeconds": "how often a replica that stands by tries",
    "policy.rule": "the alignment rule of the planner",
    "policy.srtf": "the weight of remaining work in the score (Tetris 3.3)",
    "policy.sharing": "how a job's share is measured: dominant resource, memory slots, or deficits (Graphene)",
    "policy.fairness": "between the jobs of a queue: 0 only packs, near 1 only shares (Tetris 3.4). Between queues, shares decide",
    "policy.barrier": "tasks go first once this part of their stage has ended (Tetris 3.5)",
    "policy.starvedAfterSeconds": "after so long a class gets a time by which it is due ([turns](../concepts/turns.md))",
    "policy.reservable": "at most this part of the cluster is reserved for classes that are due",
    "locality.levels": "labels of nodes, the smallest groups first",
    "locality.waitSeconds": "for how long a job is passed over at the node, then at each level; then it goes anywhere",
    "locality.target": "the part of a job's tasks that are to run near their input: `control` computes the first wait for it; 0: off",
    "locality.maxWaitSeconds": "no computed wait is longer",
    "locality.remotePenalty": "the part of its score that a start farther from its input costs (Tetris 3.2)",
    "locality.longTaskSeconds": "tasks of at least so long are kept apart; 0: they are not",
    "queues[].name": "as pods name it",
    "queues[].weight": "its part among its siblings that have pods",
    "queues[].minimumShare": "the part of the whole cluster that it is sure of while it has pods",
    "queues[].policy": "`fair`: its jobs share. `fifo`: its jobs go in the order of their arrival",
    "queues[].parent": "the queue whose share it divides with its siblings",
    "queues[].namespaces": "who may use it: a list of namespaces, or labels that they must all carry. `null`: all namespaces",
    "reclaim.fairShareSeconds": "after so long below its fair share a queue gets room by evictions; 0: never",
    "reclaim.minimumShareSeconds": "the same for its minimum share; 0: never",
    "reclaim.evictionsPerMinute": "the rate of evictions over the whole cluster",
    "log.level": "how much is logged",
    "log.format": "one JSON object a line, or text",
}


def settings_page() -> str:
    """Return the page. Raises KeyError where a setting has no sentence, ValueError where a sentence has no setting."""
    sections: dict[str, list[str]] = {}
    used = set()
    for path, default, accepted in _keys(Settings, ""):
        used.add(path)
        section = path.split(".")[0].removesuffix("[]") if path.split(".")[0].removesuffix("[]") in _TITLES else ""
        sections.setdefault(section, []).append(f"| `{path}` | {default} | {accepted} | {_SENTENCES[path]} |")
    if unused := _SENTENCES.keys() - used:
        raise ValueError(f"no such setting: {', '.join(sorted(unused))}")
    parts = [_HEAD]
    for name in ("", *_TITLES):
        title = f"## `{name}`\n\n{_TITLES[name]}" if name else "## At the top"
        table = "\n".join(["| key | default | accepted | what it does |", "|---|---|---|---|", *sections[name]])
        parts.append(f"{title}\n\n{table}\n")
    return "\n".join(parts)


def _keys(section: type[msgspec.Struct], prefix: str) -> Iterator[tuple[str, str, str]]:
    """Yield path, default and accepted values of each setting of a section, depth first."""
    types = get_type_hints(section, include_extras=True)
    for field in msgspec.structs.fields(section):
        path, kind = f"{prefix}{field.encode_name}", types[field.name]
        if path in ("apiVersion", "kind", "cluster.capacities"):
            if path == "cluster.capacities":
                yield path, "`[]`", "a list"
        elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield from _keys(kind, f"{path}.")
        elif path == "queues":
            yield from _keys(get_args(kind)[0], "queues[].")
        else:
            yield path, _default(field), _accepted(kind)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value: Any = list(field.default) if isinstance(field.default, tuple) else field.default
    return "none" if value is None else f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _accepted(kind: object) -> str:
    """Return what a setting of this type accepts."""
    if get_origin(kind) is Literal:
        return ", ".join(f"`{word}`" for word in get_args(kind))
    if get_origin(kind) is tuple:
        return "a list"
    if get_origin(kind) is not Annotated:
        return {str: "a string", int: "a whole number", float: "a number"}.get(kind, "see the text")  # type: ignore[call-overload, no-any-return]
    base, meta = get_args(kind)
    if base is str:
        return "a string"
    low = f"{meta.ge:,.12g} to" if meta.ge is not None else f"above {meta.gt:g}, to"
    return f"{low} {meta.le:,.12g}" if meta.le is not None else f"{low} below {meta.lt:g}"

"""`dovetail drain`, wired: removes what is ours, and prints what was removed."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from extender.adapters.kube.api import connect
from extender.adapters.kube.gates import GateWriter
from extender.adapters.kube.writes import PodWriter
from extender.app.on_idle_room import way_back
from extender.control.drain import Drained, SeenOfOurs, drain, look
from extender.control.drain_opportunistic import Way, WayOut
from extender.settings import Settings

_DEFAULT_SCHEDULER = "default-scheduler"
_NAMES = 10


def run(
    settings: Settings,
    kubeconfig: Path | None,
    *,
    context: str = "",
    dry_run: bool,
    as_json: bool,
    way: Way = "promote",
) -> bool:
    """Drain and print what was done; return whether nothing of ours is left. `dry_run`: print what would be done.

    `way` says what becomes of opportunistic pods that run: there may be some though settings allow none any more.
    """
    api = connect(kubeconfig, context)
    ours = frozenset(settings.control.schedulers) - {_DEFAULT_SCHEDULER}
    if dry_run:
        seen = look(api, ours)
        _print(would_do(seen), words_before(seen, ours), as_json)
        return True
    way_out = WayOut(way_back(api), PodWriter(api), way)
    drained = drain(api, GateWriter(api), ours, way_out, show=_Bar().show)
    _print(has_done(drained), words_after(drained, ours), as_json)
    return not drained.left


def would_do(seen: SeenOfOurs) -> dict[str, Any]:
    """Return what a dry run found, for machines."""
    return {
        "dryRun": True,
        "policies": list(seen.policies),
        "bindings": list(seen.bindings),
        "gates": sum(pod.gated for pod in seen.held),
        "nominations": sum(pod.nominated for pod in seen.held),
        "opportunistic": seen.opportunistic,
        "waitingForOurScheduler": seen.waiting,
    }


def has_done(drained: Drained) -> dict[str, Any]:
    """Return what was done, for machines."""
    return {
        "dryRun": False,
        "policies": list(drained.policies),
        "bindings": list(drained.bindings),
        "gates": drained.gates,
        "nominations": drained.nominations,
        "opportunistic": drained.taken_back,
        "withoutRequests": dict(drained.without_requests),
        "createdSince": drained.since,
        "left": dict(drained.left),
        "waitingForOurScheduler": drained.waiting,
    }


def words_before(seen: SeenOfOurs, ours: frozenset[str]) -> list[str]:
    """Return what a dry run found, for people."""
    return [
        f"admission policies to remove    {_listed(seen.policies)}",
        f"gates to remove                 {sum(pod.gated for pod in seen.held)}",
        f"nominations to clear            {sum(pod.nominated for pod in seen.held)}",
        f"opportunistic pods to take back {seen.opportunistic}",
        *_waiting(seen.waiting, ours),
        "Nothing was changed.",
    ]


def words_after(drained: Drained, ours: frozenset[str]) -> list[str]:
    """Return what was done, for people."""
    return [
        f"admission policies removed      {_listed(drained.policies)}",
        f"gates removed                   {drained.gates}",
        f"nominations cleared             {drained.nominations}",
        *([f"opportunistic pods taken back   {drained.taken_back}"] if drained.taken_back else []),
        *_waiting(drained.waiting, ours),
        *_named("pods that go on without their requests", drained.without_requests),
        *_since(drained.since),
        *_named("pods that still carry something of ours", drained.left),
        *(["Run it again once the reason is gone."] if drained.left else []),
        *([] if drained.left or drained.since else ["No pod is held."]),
    ]


def _named(what: str, pods: Mapping[str, str]) -> list[str]:
    """Return how many pods there are, and the first ones with their reasons."""
    if not pods:
        return []
    shown = list(pods.items())[:_NAMES]
    more = [f"  and {len(pods) - len(shown)} more"] if len(pods) > len(shown) else []
    return [f"{what}: {len(pods)}", *(f"  {pod}: {reason}" for pod, reason in shown), *more]


def _since(count: int) -> list[str]:
    if not count:
        return []
    return [
        f"new pods that carry the gate: {count}. No policy gives it to them any more: take it out of their templates,",
        "  and run this again.",
    ]


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"


def _waiting(count: int, ours: frozenset[str]) -> list[str]:
    if not count:
        return []
    names = " or ".join(sorted(ours))
    return [
        f"pods that wait for {names}: {count}. If that scheduler is removed too, nobody places them:",
        "  leave it until they are bound, or create them again with another schedulerName.",
    ]


def _print(document: dict[str, Any], lines: list[str], as_json: bool) -> None:
    click.echo(json.dumps(document, indent=2) if as_json else "\n".join(lines))


class _Bar:
    """A progress bar on a terminal, one for each round; nothing elsewhere."""

    def __init__(self) -> None:
        self._bar: Any = None

    def show(self, done: int, total: int) -> None:
        if not sys.stderr.isatty():
            return
        if self._bar is None:
            self._bar = click.progressbar(length=total, label="pods", show_pos=True, file=sys.stderr)
        self._bar.update(1)
        if done == total:
            self._bar.render_finish()
            self._bar = None

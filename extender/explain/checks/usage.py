"""Whether what nodes use is measured: who measures it, how old it is, which nodes and which series have no partner."""

from collections.abc import Iterator

from extender.adapters.usage.report import AutoReport, UsageReport
from extender.cluster.resources import CPU, MEMORY
from extender.explain.amounts import amount, seconds
from extender.explain.findings import MOST_SHOWN, OK, PROBLEM, WARNING, Facts, Finding, Silent
from extender.words import many

_CHECK = "usage"


def usage(facts: Facts) -> Iterator[Finding]:
    """Say what is known of the use of nodes, where settings have it measured."""
    report = facts.usage
    if report is None:
        return
    if isinstance(report, str):
        unknown = f"cannot tell whether the use of nodes is read, which only `dovetail control` knows: {report}"
        ask = "give its address by --control, after `kubectl port-forward` if need be"
        yield Finding(_CHECK, WARNING, unknown, "see shares" if isinstance(report, Silent) else ask)
    elif not report.on:
        restart = "start it again: settings are read at its start"
        yield Finding(_CHECK, PROBLEM, "settings say where to read the use of nodes, `control` reads none", restart)
    elif report.failure is not None:
        advice = "until it can be read no pod is started on what is idle, and none evicted for it; docs/guide/usage.md"
        yield Finding(_CHECK, PROBLEM, f"the use of nodes is not known: {report.failure}", advice)
    else:
        yield from _measured(report)
        if facts.eligible is not None:
            yield from _unmeasured_rates(report)
    if isinstance(report, UsageReport) and report.auto is not None:
        yield from _auto(report.auto)


def _measured(report: UsageReport) -> Iterator[Finding]:
    """Say how old the samples are, and whom they miss."""
    if report.measured:
        ages = f"{seconds(report.newest_seconds)} to {seconds(report.oldest_seconds)} old"
        text = f"{report.source} measures {many(report.measured, 'node')}; their samples are {ages}"
        yield Finding(_CHECK, OK, text)
    else:
        text = f"{report.source} answers, and no node's use can be trusted"
        yield Finding(_CHECK, PROBLEM, text, "see the nodes' problems below; docs/guide/usage.md")
    if report.without_series:
        names = _few(report.without_series_named, report.without_series)
        text = f"{many(report.without_series, 'node')} without series: {names}"
        yield Finding(_CHECK, WARNING, text, "does node-exporter run there? else see usage.nodeLabels and matchers")
    for problem, count in sorted(report.problems.items(), key=lambda pair: -pair[1])[:MOST_SHOWN]:
        advice = "until it is well, no pod is started on what is idle there"
        yield Finding(_CHECK, WARNING, f"{many(count, 'node')}: {problem}", advice)
    if report.without_pressure:
        text = f"{many(report.without_pressure, 'node')}: whether regular pods wait for CPU is not known"
        advice = (
            "until it is, nobody is evicted for CPU there; container_pressure_cpu_waiting_seconds_total needs kubelets "
            "from 1.34 and cgroup v2"
        )
        yield Finding(_CHECK, WARNING, text, advice)
    if report.strangers:
        names = _few(report.strangers_named, report.strangers)
        text = f"series of {many(report.strangers, 'machine')} outside this cluster: {names}"
        advice = "other clusters in a shared store, or machines outside: leave them out by usage.matchers"
        if report.without_series:
            advice = "if these are the nodes without series by another name, set usage.nodeLabels; else usage.matchers"
        yield Finding(_CHECK, WARNING if report.without_series else OK, text, advice)


def _unmeasured_rates(report: UsageReport) -> Iterator[Finding]:
    """Say on which nodes no opportunistic pod may start, as rates that they declare are not measured."""
    for names, count in sorted(report.without_rates.items(), key=lambda pair: -pair[1])[:MOST_SHOWN]:
        advice = "until it is measured, no pod is started on what is idle there; docs/guide/usage.md"
        yield Finding(_CHECK, WARNING, f"{many(count, 'node')}: {names} declared and not measured", advice)


def _auto(auto: AutoReport) -> Iterator[Finding]:
    """Say of how many nodes there is a history to predict peaks from, and with which margin (T_alloc `auto`)."""
    if auto.failure is not None:
        advice = "pods count in full, or by their class, where their history is too old; docs/guide/opportunistic.md"
        yield Finding(_CHECK, WARNING, f"the history of use cannot be read: {auto.failure}", advice)
    if auto.sigmas is None:
        advice = "no pod is started on what is idle until there are; `control` makes them every half minute"
        yield Finding(_CHECK, WARNING, "there are no predicted peaks", advice)
        return
    nodes = f"{auto.known} of {many(auto.nodes, 'node')} with a history of two hours"
    amounts = " and ".join(amount(name, auto.room[name]) for name in (CPU, MEMORY) if name in auto.room)
    room = f"; they leave {amounts} in all" if amounts else ""
    text = f"{nodes}; peaks are predicted at N = {auto.sigmas:.1f}{room}"
    yield Finding(_CHECK, OK, text)


def _few(names: tuple[str, ...], count: int) -> str:
    return ", ".join(names) + (", ..." if count > len(names) else "")

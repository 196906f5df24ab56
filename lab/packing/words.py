"""A packing report in words."""

from collections.abc import Iterator, Mapping

from extender.cluster.resources import CPU, MEMORY
from extender.explain.amounts import amount
from extender.words import many
from lab.packing.draining import Drained
from lab.packing.inflation import MOST
from lab.packing.reporting import Compacted, Filled, Grown, PackingReport, Under

_NAMED = 5


def words(report: PackingReport) -> Iterator[str]:
    """Yield the report's lines."""
    classes = f"{report.classes:,} class{'' if report.classes == 1 else 'es'}"
    yield f"{report.source}: {many(report.machines, 'node')}, {many(report.tasks, 'task')} in {classes}."
    if report.now is not None:
        yield ""
        yield "Now:"
        yield from _holes(report.now)
    if report.drain is not None:
        yield from _drained(report.drain)
    for under in report.policies:
        yield ""
        yield from _under(report, under)
    if len(report.policies) > 1:
        yield ""
        yield from _compared(report)
    yield ""
    yield from _notes(report)


def _drained(drain: Drained) -> Iterator[str]:
    if drain.nodes:
        idle = f" (no pod would have to go from {drain.idle:,})" if drain.idle else ""
        any_ = "One node" if len(drain.nodes) == 1 else f"Any one of {len(drain.nodes):,} nodes"
        yield f"  {any_} could be drained now{idle}: {_some(drain.nodes)}."
    else:
        yield "  No node could be drained now."
    for obstacle in drain.obstacles:
        yield f"  {obstacle.nodes} cannot be, as {obstacle.reason}; the first: {obstacle.first}."


def _under(report: PackingReport, under: Under) -> Iterator[str]:
    yield f"Placed anew by {under.policy}, in the order of {under.order}:"
    compacted, several = under.compacted, report.trials > 1
    if compacted is None:
        yield "  This workload does not fit, whatever the number of such nodes tried."
    else:
        spread = f" (90th percentile of {report.trials} trials, range {min(compacted.sizes)} to {max(compacted.sizes)})"
        yield f"  {_fits(report, compacted)}{spread if several else ''}."
        yield f"  No placement needs fewer than {compacted.lower_bound} on the same draws."
        if compacted.disagree:
            some = f"{compacted.disagree} of {compacted.neighbours} neighbouring sizes"
            yield f"  Packing is not monotone: {some} disagree."
    if under.pending:
        yield f"  All nodes together ({report.machines:,}) have no place for {many(under.pending, 'task')}."
    yield from _holes(under.holes)
    for grown in under.inflated:
        more = "" if grown.factor < MOST else " and more"
        yield f"  {_way(grown)}: the workload can grow to {grown.factor:.2f} times itself{more}{_at(grown)}."
    if under.by_chance:
        least, highest = (pick(grown.factor for grown in under.by_chance) for pick in (min, max))
        yield f"  Jobs cloned at random, {len(under.by_chance)} times: to {least:.2f} to {highest:.2f} times itself."


def _fits(report: PackingReport, compacted: Compacted) -> str:
    if compacted.machines > report.machines:
        return f"This workload does not fit on your {report.machines} nodes; it fits on {compacted.machines} such nodes"
    return f"This workload fits on {compacted.machines} of your {report.machines} nodes"


def _way(grown: Grown) -> str:
    scope = "" if grown.classes == "all" else ", without picky tasks"
    return ("More tasks" if grown.way == "horizontal" else "Larger tasks") + scope


def _at(grown: Grown) -> str:
    return f" (CPU {grown.used.cpu:.0f} %, memory {grown.used.memory:.0f} %)"


def _holes(filled: Filled) -> Iterator[str]:
    before, after = filled.before, filled.after
    yield f"  Allocated: CPU {before.cpu:.1f} %, memory {before.memory:.1f} %."
    unit = f"{amount(CPU, filled.unit[CPU])} and {amount(MEMORY, filled.unit[MEMORY])}"
    yield f"  Holes take {filled.units} units of {unit}: then CPU {after.cpu:.1f} %, memory {after.memory:.1f} %."
    for one, other, names in (("Memory", "CPU", filled.cpu_stranded), ("CPU", "memory", filled.memory_stranded)):
        if names:
            yield f"  {one} is what strands {other} on {many(len(names), 'node')}: {_some(names)}."


def _compared(report: PackingReport) -> Iterator[str]:
    first, *others = report.policies
    for other in others:
        if first.compacted is None or other.compacted is None:
            continue
        ours, theirs = other.compacted.machines, first.compacted.machines
        if ours == theirs:
            yield f"{other.policy} needs as many nodes as {first.policy}: {ours}."
        else:
            difference = f"{abs(theirs - ours)} {'fewer' if ours < theirs else 'more'} nodes than {first.policy}"
            yield f"{other.policy} needs {difference}: {ours}, not {theirs}."


def _notes(report: PackingReport) -> Iterator[str]:
    if any(report.picky.values()):
        large, few = report.picky["large"], report.picky["few_machines"]
        yield f"Picky: {large} tasks want more than 60 % of the median node; {few} may go to fewer than 60 % of all."
    if report.misfits:
        count, jobs = sum(report.misfits.values()), _some(_counted(report.misfits))
        yield f"Left out: {count} tasks that fit on no node, however empty, or are too many to keep apart: {jobs}."
    for part in report.left_out:
        yield f"Left out: {part}."
    yield f"Not modelled: {'; '.join(report.not_modelled)}."


def _counted(counts: Mapping[str, int]) -> list[str]:
    return [f"{name} ({count})" for name, count in counts.items()]


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more

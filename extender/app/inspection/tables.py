"""What the user's commands print: plain text of at most 100 columns, as the service's image has no library for it."""

import textwrap
from collections.abc import Mapping, Sequence

from extender.control.plan_input.preferred_nodes import words_of
from extender.explain.amounts import amount, in_words, percent, seconds
from extender.explain.doctor import Finding
from extender.explain.pod import (
    BOUND,
    FINISHED,
    HELD,
    MOST_NODES,
    RELEASED,
    Explanation,
    NodeTerms,
    Position,
)
from extender.explain.queues import QueueState
from extender.planner import WaitLeft

WIDTH = 100
_LABEL = 14
_LONGEST_NAME = 34
_LEAST_LAST = 20


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return rows under heads, two spaces between columns; those in `right` end at their right edge.

    What is too wide is wrapped in the last column, and then cut in the first.
    """
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    excess = max(sum(widths) + 2 * (len(widths) - 1) - WIDTH, 0)
    from_last = min(excess, max(widths[-1] - _LEAST_LAST, 0))
    widths[-1], widths[0] = widths[-1] - from_last, widths[0] - (excess - from_last)
    lines = []
    for first, *others, last in (heads, *rows):
        cells = [_cut(first, widths[0]), *others]
        wrapped = textwrap.wrap(last, widths[-1]) or [""]
        for number, part in enumerate(wrapped):
            row = [*(cells if number == 0 else [""] * len(cells)), part]
            aligned = (
                cell.rjust(width) if column in right else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines)


def explanation(of: Explanation) -> str:
    """Return a pod's explanation."""
    lines = [*_wrapped(f"Pod {of.pod}: {_state(of)}", "", "  "), ""]
    for label, text in _facts(of):
        lines += _fact(label, text)
    if of.change:
        lines += ["", "What would have to change", *(line for it in of.change for line in _wrapped(it, "  - ", "    "))]
    if of.nodes:
        lines += ["", f"Best nodes as they are now ({_room(of.nodes)})", _nodes(of.nodes)]
    if of.use:
        rows = [
            [name, amount(name, it.allocated), "no limit" if it.offered is None else amount(name, it.offered)]
            for name, it in of.use.items()
        ]
        lines += ["", f"Node {of.node}", table(["DIMENSION", "ALLOCATED", "OFFERED"], rows, right=(1, 2))]
    return "\n".join(lines)


def queues(states: Sequence[QueueState]) -> str:
    """Return where the queues stand."""
    heads = ["QUEUE", "WEIGHT", "MINIMUM", "SHARE", "FAIR", "RUNNING", "HELD", "RELEASED", "OLDEST"]
    rows = [
        [
            _cut("  " * it.depth + it.name),
            f"{it.weight:g}",
            percent(it.minimum) if it.minimum else "-",
            percent(it.share),
            "-" if it.fair is None else percent(it.fair),
            f"{it.running:,}",
            f"{it.held:,}",
            f"{it.released:,}",
            "-" if it.oldest_seconds is None else seconds(it.oldest_seconds),
        ]
        for it in states
    ]
    return (
        table(heads, rows, right=range(1, 9)) if rows else "no queue is declared, and no pod has a place in the order"
    )


def findings(found: Sequence[Finding]) -> str:
    """Return what doctor found, problems first, and what to do."""
    order = ("problem", "warning", "ok")
    lines = []
    for it in sorted(found, key=lambda it: order.index(it.level)):
        head = f"{it.level:8} {it.check:15}"
        lines += _wrapped(it.text, head, " " * len(head))
        if it.advice:
            lines += _wrapped(it.advice, " " * len(head) + "-> ", " " * len(head) + "   ")
    counts = {level: sum(it.level == level for it in found) for level in order}
    return "\n".join(
        [*lines, "", f"problems: {counts['problem']}, warnings: {counts['warning']}, fine: {counts['ok']}"]
    )


def _state(of: Explanation) -> str:
    waited = seconds(of.waited_seconds)
    if of.state == HELD:
        return f"held by our gate, for {waited}"
    if of.state == RELEASED:
        return f"released, waits for kube-scheduler, {waited} after its creation"
    if of.state in (BOUND, FINISHED) and of.node:
        return f"{of.state} {'to' if of.state == BOUND else 'on'} node {of.node}"
    return f"{of.state}: scheduler {of.scheduler} decides" if of.state == "not ours" else of.state


def _facts(of: Explanation) -> list[tuple[str, str]]:
    """Return the labelled lines; those without text are left out."""
    found = [
        ("Why it waits", f"{of.reason.text} ({of.reason.kind})" if of.reason else of.refusal),
        ("Its wait", _wait(of.wait) if of.wait else ""),
        ("Position", _position(of.position) if of.position else ""),
        ("Would go to", f"node {of.node}{_near(of)}" if of.state == HELD and of.node else ""),
        ("Near input", _preferred(of)),
        ("Nominated", _nominated(of)),
        ("Queue", _queue(of)),
        ("Job", _job(of)),
        ("Priority", str(of.priority)),
        ("Demand", in_words(of.demand)),
        ("Broken", of.problem or ""),
    ]
    return [(label, text) for label, text in found if text]


def _wait(of: WaitLeft) -> str:
    passed = f"its job has been passed over for {_whole(of.passed)} of {of.seconds:g} s"
    if of.stays:
        return f"{of.beyond} in {_whole(of.left)} s ({passed})"
    return f"{of.beyond} in {_whole(of.left)} s, if it is passed over all that time ({passed})"


def _whole(seconds: float) -> str:
    """Return seconds, without a part where there are several."""
    return f"{seconds:.0f}" if seconds >= 1 else f"{seconds:.1f}"


def _position(of: Position) -> str:
    pods = f"{of.before:,} {'pod' if of.before == 1 else 'pods'}"
    if of.placed:
        return f"{pods} before it, {of.in_queue:,} of its queue; this plan places it"
    if of.reached:
        return f"{pods} before it, {of.in_queue:,} of its queue, once there is room (as if all nodes were empty)"
    return f"at least {pods} before it, {of.in_queue:,} of its queue: as many as all nodes hold if they were empty"


def _nominated(of: Explanation) -> str:
    if of.ours is None:
        return f"to node {of.nominated}" if of.nominated and of.state in (HELD, RELEASED) else ""
    return f"to node {of.nominated}" + (", where it went" if of.ours else ", but kube-scheduler chose another")


def _near(of: Explanation) -> str:
    return f", {words_of(of.level)}" if of.level else ""


def _preferred(of: Explanation) -> str:
    if not of.preferred:
        return ""
    more = ", ..." if len(of.preferred) >= MOST_NODES else ""
    runs = f"; it runs {words_of(of.level)}" if of.level and of.state in (BOUND, FINISHED) else ""
    return f"on {', '.join(of.preferred)}{more}{runs}"


def _queue(of: Explanation) -> str:
    if not of.queue or of.share is None or of.fair_share is None:
        return of.queue
    return f"{of.queue}: share {percent(of.share)}, fair share {percent(of.fair_share)}"


def _job(of: Explanation) -> str:
    if of.work is None or of.owed is None:
        return of.job
    side = f"{percent(abs(of.owed))} {'below' if of.owed > 0 else 'above'}" if abs(of.owed) >= 0.0005 else "at"
    return f"{of.job}: {seconds(of.work)} of the whole cluster left, {side} its fair share"


def _room(terms: Sequence[NodeTerms]) -> str:
    fits = sum(it.fits for it in terms)
    if not fits:
        return "none has room for it"
    return (
        "all of these have room for it"
        if fits == len(terms)
        else f"{fits} of these {'has' if fits == 1 else 'have'} room for it"
    )


def _nodes(terms: Sequence[NodeTerms]) -> str:
    near = any(it.level for it in terms)
    rows = [
        [
            _cut(it.name),
            "yes" if it.fits else "no" if it.allowed else "barred",
            _term(it.score),
            _term(it.alignment),
            _term(it.remote),
            _term(it.work),
            *([it.level or "-"] if near else []),
            in_words(it.short) if it.short else "-",
        ]
        for it in terms
    ]
    heads = ["NODE", "FITS", "SCORE", "ALIGNMENT", "REMOTE", "WORK", *(["NEAR"] if near else []), "SHORT OF"]
    return table(heads, rows, right=(2, 3, 4, 5))


def _term(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _fact(label: str, text: str) -> list[str]:
    return _wrapped(text, f"{label:{_LABEL}}", " " * _LABEL)


def incomplete(unread: Mapping[str, str]) -> list[str]:
    """Return the lines that come before an answer for which this could not be read, by name and reason."""
    if not unread:
        return []
    reasons = (f"{name}: {why}" for name, why in sorted(unread.items()))
    return [*_wrapped(f"INCOMPLETE, as this could not be read: {'; '.join(reasons)}", "", "  "), ""]


def _wrapped(text: str, first: str, later: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def _cut(name: str, longest: int = _LONGEST_NAME) -> str:
    return name if len(name) <= longest else f"{name[: longest - 3]}..."

"""What `dovetail queues` and `dovetail doctor` print for people."""

from collections.abc import Sequence

from extender.app.inspection.page import NARROW, WIDE, Page
from extender.explain.amounts import percent, seconds
from extender.explain.findings import Finding
from extender.explain.new_pods import NewPods, in_words
from extender.explain.queues import QueueState


def queues(states: Sequence[QueueState], page: Page = NARROW, *, ungated: bool = False) -> str:
    """Return where the queues stand; on a wide page with their parent and policy, and whether they are declared.

    Where pods run on idle resources, their shares stand beside those of regular pods. With `ungated`, pods without a
    gate wait, too; else those do that were refused.
    """
    if not states:
        return "no queue is declared, and no pod has a place in the order"
    opportunistic = any(state.opportunistic_share for state in states)
    ungated = ungated or any(state.ungated for state in states)
    shares = ["SHARE", *(["OPPORT."] if opportunistic else []), "FAIR"]
    pods = ["RUNNING", "HELD", *(["UNGATED"] if ungated else []), "RELEASED"]
    heads = ["QUEUE", "WEIGHT", "MINIMUM", *shares, *pods, "OLDEST"]
    rows = [_queue(state, page, opportunistic=opportunistic, ungated=ungated) for state in states]
    numbers = len(heads)
    if page is WIDE:
        heads += ["PARENT", "POLICY", "DECLARED"]
        for row, state in zip(rows, states, strict=True):
            row += [state.parent or "-", state.policy, "yes" if state.declared else "no"]
    return page.table(heads, rows, right=range(1, numbers))


def new_pods(hold: NewPods | None, page: Page = NARROW) -> list[str]:
    """Return the lines that say whether new pods are held; none where that never changes."""
    return ["", *page.wrapped(f"New pods {in_words(hold)}", "", "  ")] if hold is not None else []


def findings(results: Sequence[Finding], page: Page = NARROW) -> str:
    """Return what doctor found, problems first, and what to do."""
    order = ("problem", "warning", "ok")
    lines = []
    for finding in sorted(results, key=lambda finding: order.index(finding.level)):
        head = f"{finding.level:8} {finding.check:15}"
        lines += page.wrapped(finding.text, head, " " * len(head))
        if finding.advice:
            lines += page.wrapped(finding.advice, " " * len(head) + "-> ", " " * len(head) + "   ")
    counts = {level: sum(finding.level == level for finding in results) for level in order}
    return "\n".join(
        [*lines, "", f"problems: {counts['problem']}, warnings: {counts['warning']}, fine: {counts['ok']}"]
    )


def _queue(state: QueueState, page: Page, *, opportunistic: bool, ungated: bool) -> list[str]:
    beside = percent(state.opportunistic_share) if state.opportunistic_share else "-"
    return [
        page.name("  " * state.depth + state.name),
        f"{state.weight:g}",
        percent(state.minimum) if state.minimum else "-",
        percent(state.share),
        *([beside] if opportunistic else []),
        "-" if state.fair is None else percent(state.fair),
        f"{state.running:,}",
        f"{state.held:,}",
        *([f"{state.ungated:,}"] if ungated else []),
        f"{state.released:,}",
        "-" if state.oldest_seconds is None else seconds(state.oldest_seconds),
    ]

"""Who runs on what others reserved and do not use, and which held pods could: a note, and never a problem."""

from collections import Counter
from collections.abc import Iterator, Sequence

from extender.cluster.model import Node
from extender.cluster.node_terms import THRESHOLD_ANNOTATION
from extender.explain.findings import MOST_SHOWN, OK, Eligible, Facts, Finding
from extender.words import many


def opportunistic(facts: Facts) -> Iterator[Finding]:
    """Count opportunistic pods; where settings have them, also the held pods that may become such, and where not."""
    running = sum(pod.opportunistic and pod.holds is not None for pod in facts.pods)
    if facts.eligible is None:
        if running:
            text = f"on idle resources: {many(running, 'pod')}; settings start no more (opportunistic.enabled: false)"
            yield Finding("opportunistic", OK, text)
        return
    if "pods" not in facts.unread:
        text = f"on idle resources: {many(running, 'pod')}; {_held(facts.eligible)}"
        yield Finding("opportunistic", OK, text)
    if "nodes" not in facts.unread and (stated := _stated(facts.nodes)):
        yield Finding("opportunistic", OK, stated)


def _stated(nodes: Sequence[Node]) -> str:
    """Return which nodes get no opportunistic pods, and which state a threshold of their own; empty where none does."""
    refuse = Counter(node.terms.refuses for node in nodes if node.terms.refuses is not None)
    others = [node.terms.threshold for node in nodes if node.terms.refuses is None]
    lines = [f"{many(count, 'node')}: {reason}" for reason, count in sorted(refuse.items())]
    if off := others.count(0.0):
        lines.append(f"{many(off, 'node')}: {THRESHOLD_ANNOTATION} says so, or is broken")
    own = sum(threshold is not None and threshold > 0 for threshold in others)
    parts = [f"no opportunistic pods on {', '.join(lines)}"] if lines else []
    return "; ".join([*parts, *([f"with a threshold of their own: {many(own, 'node')}"] if own else [])])


def _held(eligible: Eligible) -> str:
    may = f"held, and may run there by their spec: {many(eligible.pods, 'pod')}"
    reasons = sorted(eligible.reasons.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{many(count, 'pod')}: {reason}" for reason, count in reasons[:MOST_SHOWN]]
    if rest := sum(count for _, count in reasons[MOST_SHOWN:]):
        lines.append(f"{many(rest, 'pod')}: other reasons")
    return "; ".join([may, *([f"held, and may not: {', '.join(lines)}"] if lines else [])])

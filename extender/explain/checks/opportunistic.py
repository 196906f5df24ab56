"""Who runs on what others reserved and do not use, and which held pods could: a note, and never a problem."""

from collections.abc import Iterator

from extender.explain.findings import MOST_SHOWN, OK, Eligible, Facts, Finding, many


def opportunistic(facts: Facts) -> Iterator[Finding]:
    """Count opportunistic pods; where settings have them, also the held pods that may become such, and why not."""
    running = sum(pod.opportunistic and pod.holds is not None for pod in facts.pods)
    if facts.eligible is None:
        if running:
            text = f"on idle resources: {many(running, 'pod')}; settings start no more (opportunistic.enabled: false)"
            yield Finding("opportunistic", OK, text)
        return
    if "pods" not in facts.unread:
        text = f"on idle resources: {many(running, 'pod')}; {_held(facts.eligible)}"
        yield Finding("opportunistic", OK, text)


def _held(eligible: Eligible) -> str:
    may = f"held, and may run there by their spec: {many(eligible.pods, 'pod')}"
    reasons = sorted(eligible.reasons.items(), key=lambda item: (-item[1], item[0]))
    told = [f"{many(count, 'pod')}: {reason}" for reason, count in reasons[:MOST_SHOWN]]
    if rest := sum(count for _, count in reasons[MOST_SHOWN:]):
        told.append(f"{many(rest, 'pod')}: other reasons")
    return "; ".join([may, *([f"held, and may not: {', '.join(told)}"] if told else [])])

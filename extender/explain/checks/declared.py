"""Whether nodes and pods declare what we need, in a form that can be read: capacities, annotations."""

from collections.abc import Iterator, Sequence

from extender.cluster.resources import IO_DIMENSIONS
from extender.explain.findings import MOST_SHOWN, OK, WARNING, Facts, Finding
from extender.words import many


def capacities(facts: Facts) -> Iterator[Finding]:
    """Say which nodes declare neither disk nor network."""
    if "nodes" in facts.unread:
        return
    if not facts.nodes:
        yield Finding("capacities", WARNING, "there are no nodes")
        return
    bare = sorted(node.name for node in facts.nodes if not node.allocatable.keys() & set(IO_DIMENSIONS))
    if bare:
        text = f"{len(bare)} of {many(len(facts.nodes), 'node')} declare no disk or network: {_few(bare)}"
        fix = "annotate them with dovetail.dev/capacity, or set cluster.capacities; until then these are not limited"
        yield Finding("capacities", WARNING, text, fix)
    else:
        yield Finding("capacities", OK, "every node declares disk or network")


def annotations(facts: Facts) -> Iterator[Finding]:
    """Say which annotations of ours cannot be understood."""
    broken = [(f"node {node.name}", node.problem) for node in facts.nodes if node.problem]
    broken += [(f"pod {pod.full_name}", pod.problem) for pod in facts.pods if pod.problem]
    for name, problem in sorted(broken)[:MOST_SHOWN]:
        yield Finding("annotations", WARNING, f"{name}: {problem}", "correct it; until then it is not counted")
    if len(broken) > MOST_SHOWN:
        text = many(len(broken) - MOST_SHOWN, "more broken annotation")
        yield Finding("annotations", WARNING, text, "see events BrokenAnnotation")
    if not broken and not {"nodes", "pods"} & facts.unread.keys():
        yield Finding("annotations", OK, "all annotations of ours can be understood")


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown}, ..." if len(names) > 3 else shown

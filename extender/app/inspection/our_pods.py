"""Asks our own pods through the API server's proxy: what they say, and whether those that say nothing should."""

from collections.abc import Mapping
from typing import Any

from extender.adapters.kube.api import Refused
from extender.adapters.metrics.scraping import our_pods, said_by_pods
from extender.app.inspection.reading import BARRED, Reader
from extender.errors import ClusterError
from extender.explain.findings import Silent


def said_by_ours(reader: Reader, port_name: str, path: str) -> tuple[list[tuple[str, str]], str]:
    """Return what our pods with this port say at a path, as (pod, text), and why others do not; empty where all do.

    That is `Silent` where none answers and none is ready: where the kubelet finds one ready, it is the network that
    keeps us out. Raises Refused where they may not be asked.
    """
    texts: list[tuple[str, str]] = []
    failures: list[str] = []
    ready = False
    for pod in our_pods(reader.api, reader.namespace):
        try:
            texts += said_by_pods(reader.api, [pod], port_name, path)
        except ClusterError as error:
            if isinstance(error, Refused) and error.status in BARRED:
                raise
            failures.append(_in_words(pod, error))
            ready = ready or _is_ready(pod)
    why = "; ".join(failures)
    if texts or not failures:
        return texts, why
    if ready:
        return texts, f"its pods cannot be asked through the API server: {why}; a NetworkPolicy may forbid it"
    return texts, Silent(f"none of its pods is ready, nor answers through the API server: {why}")


def _in_words(pod: Mapping[str, Any], error: ClusterError) -> str:
    name = f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']}"
    return f"{name}: answer {error.status}" if isinstance(error, Refused) else f"{name}: {error}"


def _is_ready(pod: Mapping[str, Any]) -> bool:
    """Say whether the kubelet finds a pod ready, or has not said that it is not."""
    conditions = pod["status"].get("conditions") or ()
    return all(condition["status"] == "True" for condition in conditions if condition["type"] == "Ready")

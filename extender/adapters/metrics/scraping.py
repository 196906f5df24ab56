"""Reads what our processes say of themselves: by their address, or through the API server's proxy."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import urllib3
from prometheus_client.parser import text_string_to_metric_families

from extender.adapters.kube.api import Api, in_words, whole
from extender.cluster.resources import LARGEST
from extender.errors import ClusterError

NAME_LABEL = "app.kubernetes.io/name=dovetail"
EXTENDER_PORT, CONTROL_PORT = "extender", "control"
"""What the ports of `dovetail serve` and of `dovetail control` are called in their pods."""

_SECONDS = 5.0


@dataclass(slots=True)
class Scrape:
    """The samples of one /metrics by name and labels; `of` adds up those that match."""

    source: str
    samples: list[tuple[str, dict[str, str], float]]

    def of(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples with these labels."""
        wanted = labels.items()
        return sum(value for known, own, value in self.samples if known == name and wanted <= own.items())

    def each(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Return the labels and values of a metric's samples."""
        return [(labels, value) for known, labels, value in self.samples if known == name]

    def knows(self, name: str) -> bool:
        """Say whether there is such a metric."""
        return any(known == name for known, _, _ in self.samples)


def scraped(source: str, text: str) -> Scrape:
    """Return what the text of /metrics says. Raises ClusterError where it is no such text.

    NaN, and what nobody can have counted, say nothing.
    """
    try:
        families = list(text_string_to_metric_families(text))
    except ValueError as error:
        raise ClusterError(f"{source}: this is not the text of /metrics: {error}") from None
    samples = (sample for family in families for sample in family.samples)
    known = [(sample.name, dict(sample.labels), sample.value) for sample in samples if abs(sample.value) < LARGEST]
    return Scrape(source, known)


def by_address(url: str) -> Scrape:
    """Return the metrics of the service at an address, with or without /metrics. Raises ClusterError."""
    return scraped(*said_at(url, "metrics"))


def of_pods(api: Api, pods: Iterable[dict[str, Any]], port_name: str = EXTENDER_PORT) -> list[Scrape]:
    """Return the metrics of each of these pods (as JSON) that runs and has the port, through the API server.

    Raises ClusterError where one cannot be asked.
    """
    return [scraped(source, text) for source, text in said_by_pods(api, pods, port_name, "metrics")]


def our_pods(api: Api, namespace: str) -> list[dict[str, Any]]:
    """Return our pods in the namespace of the release, as JSON: anybody can label pods as ours in another."""
    path, labelled = f"/api/v1/namespaces/{namespace}/pods", [("labelSelector", NAME_LABEL)]
    pods: list[dict[str, Any]] = api.read(path, labelled)["items"]
    return pods


def said_at(url: str, path: str) -> tuple[str, str]:
    """Return the address of a service, named with or without the path, and what it says there. Raises ClusterError."""
    if not url.startswith(("http://", "https://")):
        raise ClusterError(f"{url!r} is no address; accepted: such as http://127.0.0.1:10352")
    url = url.rstrip("/").removesuffix(f"/{path}")
    try:
        reply = urllib3.request("GET", f"{url}/{path}", timeout=_SECONDS, retries=False, preload_content=False)
        text = whole(reply, url).decode(errors="replace")
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        raise ClusterError(f"{url}: {in_words(error)}") from None
    if reply.status != 200:
        raise ClusterError(f"{url}/{path}: {reply.status}")
    return url, text


def said_by_pods(api: Api, pods: Iterable[dict[str, Any]], port_name: str, path: str) -> list[tuple[str, str]]:
    """Return (pod, text) at a path for each of the pods (as JSON) that runs and has the port. Raises ClusterError."""
    texts = []
    for pod in pods:
        port = _port(pod, port_name)
        if port and pod.get("status", {}).get("phase") == "Running":
            meta = pod["metadata"]
            name = f"{meta['namespace']}/{meta['name']}"
            proxy = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}:{port}/proxy/{path}"
            texts.append((f"pod {name}", whole(api.get(proxy, seconds=_SECONDS), proxy).decode(errors="replace")))
    return texts


def _port(pod: dict[str, Any], name: str) -> int | None:
    """Return the port of this name that a pod listens on; None where it has none."""
    spec = pod["spec"]
    containers = (*spec["containers"], *spec.get("initContainers", ()))  # a sidecar is one of the latter
    ports = (port for container in containers for port in container.get("ports", ()))
    return next((int(port["containerPort"]) for port in ports if port.get("name") == name), None)

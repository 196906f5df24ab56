"""Manifests of nodes and pods, as plain dicts; nothing here talks to a server."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Manifest = dict[str, Any]

DEMAND = "dovetail.dev/demand"
CAPACITY = "dovetail.dev/capacity"
DURATION = "dovetail.dev/duration"
IMAGE = "registry.k8s.io/pause:3.10"


def node(
    name: str,
    *,
    cpu: str | int = "8",
    memory: str | int = "32Gi",
    pods: int = 110,
    capacity: Mapping[str, str | int] | None = None,
    extended: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> Manifest:
    """Return a node with the status that its kubelet would report: ready, with these resources.

    `capacity` is disk and network in bytes per second (our annotation), `extended` further resources by name.
    """
    offered = {"cpu": str(cpu), "memory": str(memory), "pods": str(pods), "ephemeral-storage": "100Gi"}
    offered |= {key: str(value) for key, value in (extended or {}).items()}
    metadata: Manifest = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    if capacity is not None:
        metadata["annotations"] = {CAPACITY: json.dumps(dict(capacity))}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {"taints": [dict(taint) for taint in taints]} if taints else {},
        "status": {
            "capacity": offered,
            "allocatable": offered,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "nodeInfo": _node_info(),
        },
    }


def container(
    name: str = "main",
    *,
    cpu: str | int | None = None,
    memory: str | int | None = None,
    limits: Mapping[str, str | int] | None = None,
    extended: Mapping[str, str | int] | None = None,
    restart_policy: str | None = None,
) -> Manifest:
    """Return a container; `restart_policy="Always"` makes an init container a sidecar."""
    requests = {"cpu": cpu, "memory": memory, **(extended or {})}
    named = {key: str(value) for key, value in requests.items() if value is not None}
    bounds = {key: str(value) for key, value in {**(extended or {}), **(limits or {})}.items()}
    resources = {key: value for key, value in (("requests", named), ("limits", bounds)) if value}
    manifest: Manifest = {"name": name, "image": IMAGE, "resources": resources}
    if restart_policy is not None:
        manifest["restartPolicy"] = restart_policy
    return manifest


def pod(
    name: str,
    *,
    cpu: str | int | None = None,
    memory: str | int | None = None,
    demand: Mapping[str, str | int] | None = None,
    duration: float | None = None,
    scheduler_name: str | None = None,
    namespace: str = "default",
    limits: Mapping[str, str | int] | None = None,
    extended: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> Manifest:
    """Return a pod of one container that runs to completion.

    `demand` is disk and network in bytes per second, `duration` the seconds after which it ends (none: never);
    `spec` replaces or adds top-level keys of the pod's spec.
    """
    written = dict(annotations or {})
    if demand is not None:
        written[DEMAND] = json.dumps(dict(demand))
    if duration is not None:
        written[DURATION] = f"{duration:.6f}".rstrip("0").rstrip(".")
    pod_spec: Manifest = {
        "containers": [container(cpu=cpu, memory=memory, limits=limits, extended=extended)],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
    }
    if scheduler_name is not None:
        pod_spec["schedulerName"] = scheduler_name
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {}), "annotations": written},
        "spec": pod_spec | dict(spec or {}),
    }


def _node_info() -> dict[str, str]:
    unknown = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion")
    simulated = dict.fromkeys((*unknown, "kubeletVersion", "kubeProxyVersion"), "simulated")
    return {**simulated, "operatingSystem": "linux", "architecture": "amd64"}

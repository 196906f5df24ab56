"""What happens to every pod, and who holds the Lease: from watches of our own, raw, with the times of this machine."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kubernetes.client import ApiClient
from urllib3.exceptions import HTTPError

from extender.cluster.model import HOLD_GATE
from extender.cluster.resources import CPU, DISK_READ, MEMORY
from lab.controlplane.builders import Manifest
from lab.controlplane.rest import request
from lab.experiments.ubis.real.scale import DIMENSIONS
from lab.live.machines import REGULAR_REQUESTS, amounts

USAGE = {CPU: "kwok.x-k8s.io/usage-cpu", MEMORY: "kwok.x-k8s.io/usage-memory", DISK_READ: "kwok.x-k8s.io/usage-disk"}
"""The annotations that say what a pod uses: KWOK reads the first two, our exporter the last."""

PODS = "/api/v1/pods"
_WATCH_SECONDS = 1_800
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod as it was seen at a time; `counted` is what kube-scheduler counts of it, `use` what it uses."""

    at: float
    uid: str
    name: str
    labels: Mapping[str, str]
    node: str | None
    held: bool
    opportunistic: bool
    counted: Mapping[str, float]
    use: Mapping[str, float]
    phase: str
    leaving: bool
    gone: bool

    @property
    def there(self) -> bool:
        """Whether it is on a node and has not ended."""
        return self.node is not None and not self.gone and self.phase in ("Pending", "Running")


def state_of(pod: Manifest, at: float, *, gone: bool = False) -> PodState:
    """Return the state of a pod of one container."""
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations", {})
    counted = amounts(spec["containers"][0]["resources"].get("requests", {}))
    return PodState(
        at=at,
        uid=metadata["uid"],
        name=metadata["name"],
        labels=metadata.get("labels", {}),
        node=spec.get("nodeName"),
        held=any(gate["name"] == HOLD_GATE for gate in spec.get("schedulingGates", ())),
        opportunistic=REGULAR_REQUESTS in annotations and not any(counted.values()),
        counted=counted,
        use=use_of(pod),
        phase=pod["status"]["phase"],
        leaving="deletionTimestamp" in metadata,
        gone=gone,
    )


def use_of(pod: Manifest) -> dict[str, float]:
    """Return what a pod's annotations say that it uses: millicores, bytes, bytes per second."""
    annotations = pod["metadata"].get("annotations", {})
    plain = amounts({name: annotations[USAGE[name]] for name in (CPU, MEMORY) if USAGE[name] in annotations})
    return {**dict.fromkeys(DIMENSIONS, 0.0), **plain, DISK_READ: float(annotations.get(USAGE[DISK_READ], 0.0))}


class Recording:
    """A context manager: while it is entered, the states of all pods and the holders of the Lease are written down."""

    def __init__(self, client: ApiClient, lease: str) -> None:
        self._client, self._lease = client, lease
        self._stopped = threading.Event()
        self._latest: dict[str, PodState] = {}
        self.states: list[PodState] = []
        self.holders: list[tuple[float, str]] = []

    def __enter__(self) -> "Recording":
        """Begin."""
        for path, note in ((PODS, self._note_pod), (self._lease.rpartition("/")[0], self._note_lease)):
            threading.Thread(target=self._follow, args=(path, note), name="recording", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End. The threads end with their watches, which are daemons' of this process."""
        self._stopped.set()

    def now(self) -> list[PodState]:
        """Return the latest state of each pod that is still there."""
        return [state for state in list(self._latest.values()) if not state.gone]

    def on(self, node: str) -> list[PodState]:
        """Return the pods that are on a node now and have not ended."""
        return [state for state in self.now() if state.there and state.node == node]

    def _follow(self, path: str, note: Callable[[str, Manifest], None]) -> None:
        while not self._stopped.is_set():
            with suppress(HTTPError, OSError, ValueError):
                listed = request(self._client, "GET", path)
                for item in listed["items"]:
                    note("ADDED", item)
                self._watch(path, listed["metadata"]["resourceVersion"], note)
            time.sleep(_PAUSE_SECONDS)

    def _watch(self, path: str, version: str, note: Callable[[str, Manifest], None]) -> None:
        query = f"watch=1&resourceVersion={version}&timeoutSeconds={_WATCH_SECONDS}"
        address = f"{self._client.configuration.host}{path}?{query}"
        answer = self._client.rest_client.pool_manager.request("GET", address, preload_content=False)
        rest = b""
        for chunk in answer.stream(2**16):
            *lines, rest = (rest + chunk).split(b"\n")
            for event in map(json.loads, lines):
                if event["type"] in ("ERROR", "BOOKMARK"):
                    return
                note(event["type"], event["object"])
            if self._stopped.is_set():
                return

    def _note_pod(self, kind: str, pod: Manifest) -> None:
        state = state_of(pod, time.time(), gone=kind == "DELETED")
        self._latest[state.uid] = state
        self.states.append(state)

    def _note_lease(self, _kind: str, lease: dict[str, Any]) -> None:
        holder = lease["spec"].get("holderIdentity") or ""
        if self._lease.endswith("/" + lease["metadata"]["name"]) and (
            not self.holders or self.holders[-1][1] != holder
        ):
            self.holders.append((time.time(), holder))

"""How long pods take from creation to binding, each by itself: many at once, or at an even pace."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean

from kubernetes.client import ApiClient

from lab.bench.cluster.bindings import Bindings
from lab.controlplane import workload
from lab.controlplane.builders import Manifest
from lab.errors import ControlPlaneError

BURST, STEADY = "burst", "steady"
_PER_SECOND = 20.0
_THREADS = 8
WAYS = {BURST: "all created at once", STEADY: f"{_PER_SECOND:.0f} created a second"}
"""How the pods come, in words."""


def mean_seconds(client: ApiClient, manifests: Sequence[Manifest], way: str, seconds: float) -> float:
    """Create the pods and return the mean time from the create call to the sight of the binding.

    Raises ControlPlaneError where a pod is not bound `seconds` after the last was created.
    """
    gap = 1 / _PER_SECOND if way == STEADY else 0.0
    names = [manifest["metadata"]["name"] for manifest in manifests]
    with Bindings(client, names) as bindings, ThreadPoolExecutor(_THREADS) as threads:
        begin = time.monotonic()

        def create(number: int) -> float:
            begun = time.monotonic()
            workload.create_pod(client, manifests[number])
            return begun

        calls = []
        for number in range(len(manifests)):
            time.sleep(max(begin + number * gap - time.monotonic(), 0.0))
            calls.append(threads.submit(create, number))
        created = [call.result() for call in calls]
        if bindings.wait(seconds) is None:
            missing = f"{bindings.missing} of {len(names)} pods were not bound after {seconds:.0f} s"
            raise ControlPlaneError(f"{missing}; run it alone on the machine")
    return fmean(bindings.bound[name] - at for name, at in zip(names, created, strict=True))

"""What the API server says happened to pods, change by change: counted here, by nothing of ours."""

import json
import threading
from collections import Counter, defaultdict

from extender.adapters.kube.api import Api
from tests.integration.dovetail import amounts, rates

HOLD = "dovetail.dev/hold"


class History:
    """A context manager that watches all pods from the moment it is entered.

    `regated` and `rebound` are pods whose gate or node changed twice; `over` the (node, dimension) pairs that ever held
    more than `offered` by what was bound and had not ended.
    """

    def __init__(self, client, offered):
        self._api, self._offered = Api(client), offered
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._stopped = False
        self._held = defaultdict(dict)
        self._gated, self.nodes, self.released_at = {}, {}, {}
        self.regated, self.rebound, self.over = set(), set(), set()
        self.running = Counter()
        self.phases = {}
        self.ready = threading.Event()
        self.version = None

    def __enter__(self):
        self.version = self._api.read("/api/v1/pods", [("limit", "1")])["metadata"]["resourceVersion"]
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped = True
        self._thread.join(5)

    def _watch(self):
        while not self._stopped:
            params = [("watch", "true"), ("resourceVersion", self.version), ("timeoutSeconds", "2")]
            stream = self._api.get("/api/v1/pods", params)
            rest = b""
            for chunk in stream.stream(2**16):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    change = json.loads(line)
                    self.version = change["object"]["metadata"]["resourceVersion"]
                    if change["type"] in ("ADDED", "MODIFIED"):
                        self._see(change["object"])
            stream.close()

    def _see(self, pod):
        name, spec = pod["metadata"]["name"], pod["spec"]
        gated = any(gate["name"] == HOLD for gate in spec.get("schedulingGates", ()))
        if gated and self._gated.get(name) is False:
            self.regated.add(name)
        self._gated[name] = gated
        self.phases[name] = pod["status"]["phase"]
        node = spec.get("nodeName")
        if node is None:
            return
        if self.nodes.setdefault(name, node) != node:
            self.rebound.add(name)
        if pod["status"]["phase"] in ("Succeeded", "Failed"):
            self._held[node].pop(name, None)
            return
        demand = Counter(rates(pod, "dovetail.dev/demand"))
        for container in spec["containers"]:
            demand.update(amounts(container["resources"].get("requests", {})))
        self._held[node][name] = demand
        taken = sum(self._held[node].values(), Counter())
        self.over |= {(node, d) for d, limit in self._offered[node].items() if taken[d] > limit}

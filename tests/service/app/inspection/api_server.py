"""An API server in memory: it answers from objects by path, and says what a caller may not read."""

import io
import json

from extender.adapters.kube.api import Refused

SETTINGS = "apiVersion: dovetail.dev/v1alpha1\nkind: DovetailConfiguration\nqueues: [{name: a}]\n"
SERVES = {
    "metadata": {"namespace": "n", "name": "p", "uid": "s"},
    "spec": {"containers": [{"name": "c", "ports": [{"name": "extender", "containerPort": 1}]}]},
    "status": {"phase": "Running"},
}
HELD = {
    "metadata": {"namespace": "d", "name": "a", "uid": "u"},
    "spec": {
        "schedulingGates": [{"name": "dovetail.dev/hold"}],
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    },
}
METRICS = """# TYPE dovetail_request_duration_seconds histogram
dovetail_request_duration_seconds_count{verb="filter",result="ok"} 7.0
dovetail_request_duration_seconds_count{verb="filter",result="bad_request"} 2.0
dovetail_request_duration_seconds_count{verb="prioritize",result="ok"} 3.0
# TYPE dovetail_filter_nodes histogram
dovetail_filter_nodes_bucket{le="1.0"} 5.0
dovetail_filter_nodes_bucket{le="+Inf"} 9.0
dovetail_filter_nodes_count 9.0
dovetail_filter_nodes_sum 2005.0
# TYPE dovetail_filter_nodes_created gauge
dovetail_filter_nodes_created 3.0
# TYPE dovetail_ready gauge
dovetail_ready 1.0
# TYPE dovetail_nodes gauge
dovetail_nodes 1000.0
"""


RELEASE = "dovetail-system"
CONFIG_MAPS, OUR_PODS = f"/api/v1/namespaces/{RELEASE}/configmaps", f"/api/v1/namespaces/{RELEASE}/pods"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


class Server:
    """Answers from `objects` by path: what is not there is not found, what is None may not be read."""

    def __init__(self, **objects):
        self.objects = {path.replace("__", "/"): it for path, it in objects.items()}

    def get(self, path, params=(), *, seconds=30.0):
        found = self.objects.get(path, 404)
        if found is None or found == 404:
            raise Refused(f"GET {path}: refused", 403 if found is None else 404)
        text = found if isinstance(found, str) else json.dumps(found)
        return io.BytesIO(text.encode())

    def apart(self, seconds):
        return self

    def read(self, path, params=()):
        return json.loads(self.get(path, params).read())


def server(**more):
    nothing = {"items": [], "metadata": {}}
    paths = ("/api/v1/nodes", "/api/v1/pods", CONFIG_MAPS, OUR_PODS, BINDINGS,
             "/apis/batch/v1/jobs", "/apis/apps/v1/deployments",
             "/apis/apps/v1/replicasets", "/apis/coordination.k8s.io/v1/leases",
             "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes")  # fmt: skip
    made = Server()
    made.objects = {**dict.fromkeys(paths, nothing), **more}
    return made


def items(*found):
    return {"items": list(found), "metadata": {}}


def config_map(name, namespace=RELEASE, **data):
    return {"metadata": {"namespace": namespace, "name": name}, "data": data}


def binding(namespace):
    return {"metadata": {"name": "x"}, "subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": namespace}]}

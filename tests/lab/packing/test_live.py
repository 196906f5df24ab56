"""A cluster is read as far as rights allow; the rest is named."""

import io
import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from extender.adapters.kube.api import Refused
from extender.cli import cli
from extender.errors import ClusterError
from extender.settings import Settings
from lab.packing.live import read_cluster
from lab.packing.moment import NEVER_MODELLED

HOST = "kubernetes.io/hostname"


def node(name):
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {"metadata": {"name": name, "labels": {HOST: name}}, "status": {"allocatable": allocatable}}


POD = {
    "metadata": {"name": "a", "namespace": "shop", "uid": "u"},
    "spec": {
        "nodeName": "n1",
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    },
}
CLAIM = {"metadata": {"name": "c", "namespace": "shop"}, "spec": {"volumeName": "local"}}
TERMS = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": ["n1"]}]}]
VOLUME = {"metadata": {"name": "local"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": TERMS}}}}


class Server:
    """Answers with lists of what is there; refuses paths that are not."""

    def __init__(self, **lists):
        self._lists = lists

    def get(self, path, _params=()):
        kind = path.rsplit("/", 1)[1]
        if kind not in self._lists:
            raise Refused(f"GET {path}: forbidden", 403)
        return io.BytesIO(json.dumps({"metadata": {}, "items": self._lists[kind]}).encode())

    def read(self, path, params=()):
        return json.loads(self.get(path, params).read())


CLUSTER = {"nodes": [node("n0"), node("n1")], "pods": [POD], "poddisruptionbudgets": []}


def test_a_pod_is_tied_to_the_node_of_its_local_volume():
    server = Server(**CLUSTER, persistentvolumeclaims=[CLAIM], persistentvolumes=[VOLUME])
    found = read_cluster(server, Settings(), "here")
    assert found.problem.classes.masks.tolist() == [[False, True]]
    assert found.not_modelled == list(NEVER_MODELLED)


def test_without_rights_volumes_are_named_and_their_pods_counted():
    found = read_cluster(Server(**CLUSTER), Settings(), "here")
    assert found.problem.classes.masks.tolist() == [[True, True]]
    assert found.not_modelled == [
        "volumes by claims: the nodes that they are tied to (1 pod)",
        *NEVER_MODELLED,
        "claims and volumes (GET /api/v1/persistentvolumeclaims: forbidden)",
    ]


def test_a_server_that_answers_with_a_page_is_told_in_one_line(monkeypatch):
    page = SimpleNamespace(get=lambda *_: io.BytesIO(b"<html>"))
    monkeypatch.setattr("extender.adapters.kube.api.connect", lambda *_: page)
    with pytest.raises(ClusterError, match="the cluster: the answer cannot be read: JSON is malformed"):
        CliRunner().invoke(cli, ["packing", "report"], catch_exceptions=False)

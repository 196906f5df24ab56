"""The CustomResourceDefinitions of the operators in `examples/`, read from their pinned Go modules.

`lab/controlplane/tools/crds` pins the modules. Go downloads them into its own cache and checks them against go.sum.
"""

import json
import os
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from lab.controlplane import showing, workload
from lab.controlplane.building import build, golang
from lab.controlplane.pins import TOOLS
from lab.controlplane.rest import RequestRefused, request
from lab.errors import ControlPlaneError

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PINS = TOOLS / "crds"
FILES = {
    "SparkApplication": (
        "github.com/kubeflow/spark-operator/v2",
        "config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml",
    ),
    "RayCluster": ("github.com/ray-project/kuberay/ray-operator", "config/crd/bases/ray.io_rayclusters.yaml"),
    "Workflow": ("github.com/argoproj/argo-workflows/v3", "manifests/base/crds/full/argoproj.io_workflows.yaml"),
    "JobSet": ("sigs.k8s.io/jobset", "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"),
}
"""Kind -> the module and the file in it."""

_DOWNLOAD_SECONDS = 100
_UNREACHABLE = (
    r"dial tcp|no such host|i/o timeout|proxyconnect|connection refused|TLS handshake|GOPROXY=off|403 Forbidden"
)


def definition(kind):
    """Return the definition of this kind with the whole schema of its spec; skip the test where it cannot be had.

    Left out are descriptions, the schema of the status and versions that are not stored. With them Argo's definition is
    larger than what etcd takes, and the API server works on it for half a minute.
    """
    module, file = FILES[kind]
    text = (_folder(module) / file).read_bytes()
    manifest = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    (version,) = [version for version in manifest["spec"]["versions"] if version["storage"]]
    schema = _without_descriptions(version["schema"]["openAPIV3Schema"])
    schema["properties"]["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version["schema"] = {"openAPIV3Schema": schema}
    manifest["spec"]["versions"] = [version]
    return manifest


@contextmanager
def installed(client, kind):
    """Serve this kind for the length of the block; its deletion, with all its resources, goes on after us."""
    manifest = definition(kind)
    request(client, "POST", CRDS, manifest)
    try:
        workload.wait_until(lambda: _is_served(client, manifest), 60, f"{kind} to be served")
        yield
    finally:
        request(client, "DELETE", f"{CRDS}/{manifest['metadata']['name']}")


def pinned():
    """Return the version of each module in go.mod, by its path."""
    return dict(re.findall(r"^\t(\S+) (v\S+)$", (PINS / "go.mod").read_text(), re.MULTILINE))


def _folder(module):
    """Return where Go has unpacked a module: at its pinned version, checked against go.sum."""
    try:
        go = golang.find((1, 26), cache=build.default_cache(os.environ), show=showing.quietly)
    except (ControlPlaneError, OSError) as error:
        pytest.skip(f"there is no Go to download {module} with: {error}")
    settings = ["GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS="]
    command = ["env", *settings, str(go), "mod", "download", "-json", f"{module}@{pinned()[module]}"]
    try:
        done = subprocess.run(command, cwd=PINS, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{module} did not download in {_DOWNLOAD_SECONDS} s")
    if done.returncode:
        problem = " ".join((done.stdout + done.stderr).split())
        if "SECURITY ERROR" in problem or not re.search(_UNREACHABLE, problem):
            pytest.fail(f"{module} did not download: {problem}")
        pytest.skip(f"{module} cannot be downloaded here: {problem[-200:]}")
    return Path(json.loads(done.stdout)["Dir"])


def _without_descriptions(schema):
    """Return a schema without its descriptions; a property of that name, which is a mapping, stays."""
    if isinstance(schema, dict):
        return {
            key: _without_descriptions(value)
            for key, value in schema.items()
            if not (key == "description" and isinstance(value, str))
        }
    return [_without_descriptions(value) for value in schema] if isinstance(schema, list) else schema


def _is_served(client, manifest):
    """Tell whether the API server lists the kind among those of its group."""
    spec = manifest["spec"]
    try:
        resources = request(client, "GET", f"/apis/{spec['group']}/{spec['versions'][0]['name']}")["resources"]
    except RequestRefused:
        return False
    return any(resource["kind"] == spec["names"]["kind"] for resource in resources)

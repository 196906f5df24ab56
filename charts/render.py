"""Render `manifests/` from the chart, for installing without Helm: `python -m charts.render`."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from lab.controlplane import pins
from lab.controlplane.building import build

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts" / "dovetail"
NAMESPACE = "dovetail-system"

SERVICE_ADDRESS = "10.96.0.250"
"""In the service range of kind and of kubeadm, and in the part of it that Kubernetes leaves to fixed addresses."""

VALUES: dict[str, dict[str, Any]] = {
    "scheduler": {"mode": "scheduler"},
    "existing": {"mode": "existing", "existing": {"clusterIP": SERVICE_ADDRESS}},
    # kind's kube-scheduler is there before Dovetail, and until then every call to that address waits so long.
    "kind": {
        "mode": "existing",
        "existing": {"clusterIP": SERVICE_ADDRESS},
        "kubeScheduler": {"extender": {"httpTimeout": "1s"}},
    },
}

_MADE = "# Rendered from charts/dovetail by `make manifests`: change the chart, not this file.\n"
_ADDRESS = (
    f"# {SERVICE_ADDRESS} is a fixed address in the service range that kubeadm and kind use. In a cluster with\n"
    "# another range, take a free address of that, here and in kube-scheduler's configuration.\n"
)
_PURPOSE = {
    "scheduler": "# A second scheduler, called dovetail: kubectl apply --filename manifests/scheduler.yaml\n",
    "existing": "# Dovetail for the cluster's own kube-scheduler: kubectl apply --filename manifests/existing.yaml\n"
    + _ADDRESS,
    "kind": "# What the kube-scheduler of kind-config.yaml reads; the same for any cluster made by kubeadm.\n"
    + _ADDRESS,
}
_ADMISSION = ("--show-only", "templates/admission.yaml")
_HOOK = ("--show-only", "templates/drain.yaml")
_NAMESPACE_OBJECT = f"""---
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""
GATING_API = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
"""What a cluster must have for the policies by which pods wait; `helm template` must be told."""

_GATING = {
    mode: f"""# By this, pods of namespaces labelled dovetail.dev/managed: "true" wait, beside manifests/{mode}.yaml.
# From Kubernetes 1.36: kubectl apply --filename manifests/gating/{mode}.yaml
"""
    for mode in ("scheduler", "existing")
}
_DRAIN = """# Before Dovetail is removed, while the other manifests are still there: takes our gate from every pod.
# Change the image to the one that runs. Each such `replace` runs it once more; `apply` would find the Job of before.
#   kubectl replace --force --filename manifests/drain.yaml
#   kubectl --namespace dovetail-system wait --for=condition=complete --timeout=10m job/dovetail-drain
"""
_HELM_ONLY = re.compile(
    r"^ *(app\.kubernetes\.io/managed-by|helm\.sh/chart): .*\n|^ *annotations:\n( *helm\.sh/hook.*\n)+", re.MULTILINE
)


def manifests(helm: Path) -> dict[Path, str]:
    """Return each file of `manifests/` with the text that the chart gives it."""
    texts = {name: _plain(template(helm, values, "--no-hooks")) for name, values in VALUES.items()}
    gating = {name: _plain(template(helm, VALUES[name], "--api-versions", GATING_API, *_ADMISSION)) for name in _GATING}
    drain = _plain(template(helm, VALUES["scheduler"], *_HOOK))
    bodies = {
        "scheduler.yaml": _PURPOSE["scheduler"] + _MADE + _NAMESPACE_OBJECT + texts["scheduler"],
        "existing.yaml": _PURPOSE["existing"] + _MADE + _NAMESPACE_OBJECT + texts["existing"],
        **{f"gating/{name}.yaml": _GATING[name] + _MADE + text for name, text in gating.items()},
        "drain.yaml": _DRAIN + _MADE + drain,
        "kind/kube-scheduler.yaml": _PURPOSE["kind"] + _MADE + kube_scheduler_configuration(texts["kind"]),
    }
    return {ROOT / "manifests" / name: body for name, body in bodies.items()}


def template(helm: Path, values: Mapping[str, Any], *flags: str, release: str = "dovetail") -> str:
    """Return what the chart renders to with these values. Raises CalledProcessError, with helm's reason in `stderr`."""
    command = [str(helm), "template", release, str(CHART), "--namespace", NAMESPACE, "--values", "-", *flags]
    done = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=True)
    return done.stdout


def kube_scheduler_configuration(rendered: str) -> str:
    """Return the KubeSchedulerConfiguration out of a rendered chart."""
    texts = [
        found["data"]["kube-scheduler.yaml"]
        for found in yaml.safe_load_all(rendered)
        if found["kind"] == "ConfigMap" and "kube-scheduler.yaml" in found["data"]
    ]
    return str(texts[0]).rstrip("\n") + "\n"


def _plain(rendered: str) -> str:
    """Return the objects without what only Helm reads."""
    return re.sub(r"\n{2,}", "\n\n", _HELM_ONLY.sub("", rendered)).rstrip("\n") + "\n"


@click.command()
@click.option("--helm", type=click.Path(exists=True, path_type=Path), help="The helm to use; built, if not given.")
def main(helm: Path | None) -> None:
    """Render manifests/ from the chart."""
    if helm is None:
        helm = build.provide([pins.helm()], cache=build.default_cache(os.environ))["helm"].path
    for path, text in manifests(helm).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        click.echo(path.relative_to(ROOT))


if __name__ == "__main__":
    main()

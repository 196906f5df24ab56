"""What is pinned: each part's version, programs and Go version, read from its go.mod under `tools/`."""

import re
from dataclasses import dataclass
from pathlib import Path

from lab.errors import ControlPlaneError

TOOLS = Path(__file__).parent / "tools"
DEFAULT_KUBERNETES = "1.36"
KUBERNETES_MINORS = ("1.36", "1.34")
OLDEST_KUBERNETES = (1, 33)
"""Resize of pods, which the design rests on, is there from this minor on."""

_MODULES = {
    "kubernetes": "k8s.io/kubernetes",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kwok": "sigs.k8s.io/kwok",
    "helm": "helm.sh/helm/v4",
    "prometheus": "github.com/prometheus/prometheus",
    "node_exporter": "github.com/prometheus/node_exporter",
}
_PROGRAM_NAMES = {"go.etcd.io/etcd/server/v3": "etcd"}
_TAGS = {"prometheus": "remove_all_sd"}
"""Prometheus without the service discoveries of clouds (a third of the build); `http_sd` and files stay.

Its web pages are not in its Go module; without the tag `builtinassets` it builds and serves its API without them.
"""


@dataclass(frozen=True)
class Part:
    """Programs that are built together, from one Go module of our own.

    `packages` maps a program's name to its Go package; `go` is the oldest Go that builds it.
    """

    name: str
    folder: Path
    version: str
    go: tuple[int, int]
    packages: dict[str, str]

    @property
    def link_flags(self) -> str:
        """Return the linker flags that tell a Kubernetes server which version it is."""
        if not self.name.startswith("kubernetes"):
            return ""
        major, minor, _ = self.version.removeprefix("v").split(".", 2)
        values = {
            "gitVersion": self.version,
            "gitMajor": major,
            "gitMinor": minor,
            "gitTreeState": "clean",
        }
        return " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())

    @property
    def tags(self) -> str:
        """Return the build tags, which say what of the programs is left out."""
        return _TAGS.get(self.name, "")


def control_plane(kubernetes: str = DEFAULT_KUBERNETES) -> list[Part]:
    """Return the parts of a control plane of this Kubernetes minor."""
    if kubernetes not in KUBERNETES_MINORS:
        accepted = ", ".join(KUBERNETES_MINORS)
        raise ControlPlaneError(f"Kubernetes {kubernetes!r} is not pinned; accepted: {accepted}")
    return [_read(name) for name in (f"kubernetes-{kubernetes}", "etcd", "kwok")]


def helm() -> Part:
    """Return the part that renders the chart."""
    return _read("helm")


def prometheus() -> Part:
    """Return the part that measures use."""
    return _read("prometheus")


def node_exporter() -> Part:
    """Return the part that says what a machine uses."""
    return _read("node_exporter")


def tools() -> list[Part]:
    """Return the parts that tests need beside a control plane."""
    return [helm(), prometheus(), node_exporter()]


def _read(name: str) -> Part:
    folder = TOOLS / name
    text = (folder / "go.mod").read_text()
    module = _MODULES[name.partition("-")[0]]
    go = _only(r"^go (\d+)\.(\d+)", text, folder)
    packages = re.findall(r"^(?:tool |\t)(\w\S*/\S+)$", text, re.MULTILINE)
    return Part(
        name=name,
        folder=folder,
        version=_only(rf"^(?:require )?\s*{re.escape(module)} (v\S+)", text, folder)[1],
        go=(int(go[1]), int(go[2])),
        packages={_PROGRAM_NAMES.get(package, package.rpartition("/")[2]): package for package in packages},
    )


def _only(pattern: str, text: str, folder: Path) -> re.Match[str]:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise ControlPlaneError(f"{folder / 'go.mod'} has no line like {pattern!r}; restore it from the repository")
    return match

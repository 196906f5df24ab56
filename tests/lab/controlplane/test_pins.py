"""Versions stand once, in the go.mod files."""

import pytest

from lab.controlplane import pins
from lab.errors import ControlPlaneError


def test_versions_and_programs_come_from_the_go_mod_files():
    kubernetes, etcd, kwok = pins.control_plane("1.36")
    assert kubernetes.version.startswith("v1.36.")
    assert kubernetes.packages["kube-scheduler"] == "k8s.io/kubernetes/cmd/kube-scheduler"
    assert sorted(kubernetes.packages) == ["kube-apiserver", "kube-controller-manager", "kube-scheduler"]
    assert (list(etcd.packages), list(kwok.packages), list(pins.helm().packages)) == (["etcd"], ["kwok"], ["helm"])
    assert kubernetes.go == (1, 26)
    assert [list(part.packages) for part in pins.tools()] == [["helm"], ["prometheus"], ["node_exporter"]]


@pytest.mark.parametrize("minor", pins.KUBERNETES_MINORS)
def test_each_pinned_minor_is_new_enough_and_is_told_its_own_version(minor):
    part = pins.control_plane(minor)[0]
    assert part.version.startswith(f"v{minor}.")
    assert tuple(map(int, minor.split("."))) >= pins.OLDEST_KUBERNETES
    assert f"gitVersion={part.version} " in part.link_flags
    assert f"gitMinor={minor.split('.')[1]} " in part.link_flags


def test_only_kubernetes_is_told_its_version_by_the_linker():
    assert pins.helm().link_flags == ""


def test_a_minor_that_is_not_pinned_is_refused_with_those_that_are():
    with pytest.raises(ControlPlaneError, match=r"'1\.20' is not pinned; accepted: 1\.36, 1\.34"):
        pins.control_plane("1.20")

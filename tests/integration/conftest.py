"""The real control plane of the integration tests: started when first asked for, emptied after each test."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.controlplane import pins, showing, workload
from lab.controlplane.building import build
from lab.controlplane.rest import request as send
from lab.controlplane.running import ControlPlane
from tests.integration.forking import fork_service

HERE = Path(__file__).parent
TOLD = pytest.StashKey[list[str]]()
OWNERS = ("/apis/batch/v1/jobs", "/apis/apps/v1/deployments", "/apis/apps/v1/replicasets")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder: it needs the control plane."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.integration)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which versions the tests ran on, and where the logs of a failure are."""
    for line in config.stash.get(TOLD, []):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def programs(pytestconfig: pytest.Config) -> dict[str, Path]:
    """Return the programs of the control plane, built where they are missing."""
    named = os.environ.get(build.ASSETS)
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        found = build.provide(
            pins.control_plane(pytestconfig.getoption("--kubernetes")),
            cache=build.default_cache(os.environ),
            assets=Path(named) if named else None,
            show=showing.aloud,
        )
    told = ", ".join(f"{it.name} {it.version} ({it.origin})" for it in found.values())
    pytestconfig.stash.setdefault(TOLD, []).append(f"control plane: {told}")
    return {name: it.path for name, it in found.items()}


@pytest.fixture(scope="session")
def control_plane(programs: dict[str, Path], request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """Run etcd, API server, controller manager and KWOK; no scheduler (see `start_scheduler`).

    Pods, nodes and what owns pods are removed after each test.
    """
    with ControlPlane(programs, starter=fork_service) as running:
        yield running
        if request.session.testsfailed:
            running.keep = True
            request.config.stash[TOLD].append(f"logs of the control plane: {running.folder / 'logs'}")


@pytest.fixture
def tell(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Return what takes a line with a figure to be printed at the end of the run."""
    return lambda line: pytestconfig.stash.setdefault(TOLD, []).append(f"{request.node.name}: {line}")


@pytest.fixture
def start_scheduler(control_plane: ControlPlane) -> Iterator[Callable[..., str]]:
    """Return `ControlPlane.add_scheduler`; what it starts is stopped after the test."""
    names: list[str] = []

    def start(*args: object, **kwargs: object) -> str:
        names.append(control_plane.add_scheduler(*args, **kwargs))
        return names[-1]

    yield start
    for name in names:
        control_plane.remove_scheduler(name)


@pytest.fixture
def priorities(control_plane: ControlPlane) -> Iterator[None]:
    """Let pods have the priority classes `high` and `middle`; without a class they have 0."""
    client, classes = control_plane.client(), "/apis/scheduling.k8s.io/v1/priorityclasses"
    values = {"high": 1000, "middle": 100}
    for name, value in values.items():
        send(client, "POST", classes, {"metadata": {"name": name}, "value": value})
    yield
    for name in values:
        send(client, "DELETE", f"{classes}/{name}")


@pytest.fixture(autouse=True)
def _emptied(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave no pod, no node, and no stopped component to the next test."""
    running: ControlPlane | None = None
    if "control_plane" in request.fixturenames:
        running = request.getfixturevalue("control_plane")
    yield
    if running is None:
        return
    running.start_stopped()
    client = running.client()
    for path in OWNERS:
        for owner in send(client, "GET", path)["items"]:
            space, name = owner["metadata"]["namespace"], owner["metadata"]["name"]
            group, _, plural = path.rpartition("/")
            send(client, "DELETE", f"{group}/namespaces/{space}/{plural}/{name}", propagationPolicy="Background")
    workload.delete_all_pods(client)
    workload.delete_all_nodes(client)

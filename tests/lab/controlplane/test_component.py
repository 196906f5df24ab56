"""One process: started, found healthy or not, stopped, with an error that shows its log."""

import sys

import pytest

from lab.controlplane import ports
from lab.controlplane.component import Component, Launch
from lab.controlplane.guard import Guard
from lab.errors import ControlPlaneError

SERVER = """
import http.server, sys
print("serving", flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
"""


@pytest.fixture
def guard():
    made = Guard()
    yield made
    made.close()


@pytest.fixture
def component(guard, tmp_path):
    """Return a maker of components that run a Python program with the port as its argument."""
    made = []

    def make(program):
        (port,) = ports.pick(1)
        launch = Launch(
            name="thing",
            command=[sys.executable, "-c", program, str(port)],
            log=tmp_path / "thing.log",
            health=f"http://127.0.0.1:{port}/",
        )
        made.append(Component(launch, guard))
        return made[-1]

    yield make
    for it in made:
        it.kill()


def test_it_starts_becomes_healthy_stops_and_starts_again(component):
    server = component(SERVER)
    pids = []
    for _ in range(2):
        server.start()
        server.wait_healthy(10)
        pids.append(server.pid)
        server.stop()
        assert server.pid is None
    assert pids[0] != pids[1]
    assert server.launch.log.read_text().count("serving") == 2


def test_starting_what_runs_is_refused(component):
    server = component(SERVER)
    server.start()
    with pytest.raises(ControlPlaneError, match=f"thing runs already as process {server.pid}; stop it first"):
        server.start()


def test_one_that_ends_is_named_with_the_end_of_its_log(component):
    broken = component("print('no such flag'); raise SystemExit(2)")
    broken.start()
    with pytest.raises(ControlPlaneError, match=r"(?s)thing ended before it was healthy.*thing\.log:\nno such flag"):
        broken.wait_healthy(10)


def test_one_that_never_answers_is_given_up(component):
    silent = component("import time; print('thinking', flush=True); time.sleep(60)")
    silent.start()
    with pytest.raises(ControlPlaneError, match=r"(?s)thing was not healthy within 0\.3 s"):
        silent.wait_healthy(0.3)


def test_one_that_ignores_sigterm_is_killed(component, monkeypatch):
    monkeypatch.setattr("lab.controlplane.component._STOP_SECONDS", 0.2)
    deaf = component(
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    )
    deaf.start()
    while "deaf" not in deaf.launch.log.read_text():
        pass
    deaf.stop()
    assert deaf.pid is None


def test_stopping_what_does_not_run_is_no_error(component):
    component(SERVER).stop()

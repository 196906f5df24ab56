"""A fork of the integration tests does what the command does in a process of its own."""

import os
import signal
import socket

import pytest
import yaml

from lab.controlplane.component import Launch, start_process
from lab.controlplane.running import THIS_CHECKOUT
from tests.integration.forking import Fork, fork_service

STARTERS = (start_process, fork_service)


@pytest.fixture
def launch(tmp_path):
    """Return a maker of launches of `dovetail` with these arguments."""
    logs = iter(range(10))
    return lambda *arguments: Launch("it", [*THIS_CHECKOUT, *arguments], tmp_path / f"{next(logs)}.log", "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--version",), 0),
        (("serve", "--config", "missing.yaml"), 1),
        (("serve", "--no-such-option"), 2),
        (("validate-config", "broken.yaml"), 1),
        (("queues",), 1),
    ],
)
def test_it_says_the_same_and_ends_alike_in_the_folder_and_environment_of_its_start(
    launch, tmp_path, monkeypatch, arguments, code
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", "nowhere")
    (tmp_path / "broken.yaml").write_text("server: {port: x}\n")
    started = [launch(*arguments) for _ in STARTERS]
    assert [start(it).wait(60) for start, it in zip(STARTERS, started, strict=True)] == [code, code]
    alone, forked = (it.log.read_text() for it in started)
    assert alone == forked != ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
@pytest.mark.parametrize("start", STARTERS)
def test_a_signal_ends_it_in_a_session_of_its_own(launch, tmp_path, start, number, code):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        document = {
            "clusters": [{"name": "it", "cluster": {"server": server}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "users": [{"name": "it", "user": {}}],
            "current-context": "it",
        }
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
        process = start(launch("serve", "--kubeconfig", str(tmp_path / "kubeconfig")))
        with silent.accept()[0]:  # it waits for an answer
            assert process.poll() is None
            assert os.getsid(process.pid) == process.pid
            process.terminate() if number == signal.SIGTERM else process.kill()
        assert process.wait(60) == code


def test_what_is_not_this_checkouts_command_is_a_process_of_its_own(tmp_path):
    process = fork_service(Launch("it", ["/bin/echo", "said"], tmp_path / "it.log", ""))
    assert not isinstance(process, Fork)
    assert process.wait(60) == 0
    assert (tmp_path / "it.log").read_text() == "said\n"

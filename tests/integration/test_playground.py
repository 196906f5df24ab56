"""The playground as a user starts it, and every command of the guide that says that it can be tried there."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from charts.render import ROOT
from lab.controlplane import rest, workload

pytestmark = pytest.mark.own_control_plane

PAGES = sorted((ROOT / "docs" / "guide").glob("*.md"))
MARKED = re.compile(r"^<!-- playground -->\s*\n+```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MANIFEST = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
READY_SECONDS = 120
PAGE_SECONDS = 180
SHELL_WORDS = ("cd", "export", "for", "if", "while")
HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)")


def commands_of(block):
    """Return the commands of a console block: what stands after `$ `, with what continues it."""
    commands, until = [], None
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append(line.removeprefix("$ "))
            heredoc = HEREDOC.search(line)
            until = heredoc[1] if heredoc else None
        elif commands and (until or commands[-1].endswith("\\")):
            commands[-1] += "\n" + line.removeprefix("> ")
            until = None if line.removeprefix("> ") == until else until
    return commands


def program_of(command):
    words = shlex.split(command.splitlines()[0], comments=True)
    return next((word for word in words if not re.match(r"\w+=", word)), "")


def first_missing(commands, path):
    """Return how many commands come before the first one whose program is missing: later ones may need what it does."""
    for number, command in enumerate(commands):
        program = program_of(command)
        if program not in SHELL_WORDS and "/" not in program and not shutil.which(program, path=path):
            return number
    return len(commands)


@pytest.fixture(scope="module")
def playground(programs, pytestconfig, tmp_path_factory):  # noqa: ARG001 - built before the clock runs
    """Run `dovetail playground` in a folder that looks like the checkout; end it by SIGINT, as Ctrl-C does."""
    folder = tmp_path_factory.mktemp("our checkout")
    for path in ROOT.iterdir():
        if path.name not in (".git", ".venv", "out"):
            (folder / path.name).symlink_to(path)
    (folder / ".venv").symlink_to(sys.prefix)
    log = folder / "playground.log"
    minor = pytestconfig.getoption("--kubernetes")
    command = [sys.executable, "-m", "extender", "playground", f"--kubernetes={minor}"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=output, stderr=output)
    try:
        until = time.monotonic() + READY_SECONDS
        while "Ready." not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.2)
        yield folder
        logs = Path(re.search(r"^Logs: +(\S+)$", log.read_text(), re.MULTILINE)[1])
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0, log.read_text()
        assert not logs.exists()
        assert not kubeconfig(folder).exists()
    finally:
        process.kill()
        process.wait()


def environment(folder):
    """Return the variables that a user of the playground has: our `dovetail` first, and its kubeconfig."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return os.environ | {"PATH": path, "KUBECONFIG": str(kubeconfig(folder)), "PYTHONPATH": str(ROOT)}


def kubeconfig(folder):
    return folder / "out" / "playground.kubeconfig"


@pytest.fixture
def client(playground):
    """Return a client of the playground; its pods are deleted after the test."""
    client = rest.client(kubeconfig(playground))
    yield client
    workload.delete_all_pods(client)
    client.rest_client.pool_manager.clear()


def bash(folder, script, seconds=60):
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )


def test_the_lines_that_it_prints_let_another_terminal_in(playground):
    exports = re.findall(r"^ +(export .*)$", (playground / "playground.log").read_text(), re.MULTILINE)
    script = "\n".join(["unset KUBECONFIG", "PATH=/usr/bin:/bin", *exports, "cd /", "dovetail playground pods"])

    shown = bash(playground, script)

    assert shown.returncode == 0, shown.stdout
    assert len(exports) == 2


def test_the_pods_of_the_readme_become_running(playground, client):
    manifests = [
        manifest
        for block in MANIFEST.findall((ROOT / "README.md").read_text())
        for manifest in yaml.safe_load_all(block)
        if manifest.get("kind") == "Pod"
    ]
    assert manifests
    (playground / "pods.yaml").write_text(yaml.safe_dump_all(manifests))

    applied = bash(playground, "dovetail playground apply pods.yaml")

    assert applied.returncode == 0, applied.stdout
    names = {manifest["metadata"]["name"] for manifest in manifests}
    workload.wait_until(lambda: {workload.phases(client).get(name) for name in names} == {"Running"}, 30, "Running")


def test_three_queues_fill_the_cluster_and_can_be_looked_at(playground, client):
    filled = bash(playground, "dovetail playground fill")
    assert filled.returncode == 0, filled.stdout
    workload.wait_until(lambda: list(workload.phases(client).values()).count("Running") >= 30, 30, "30 pods to run")

    listed = bash(playground, "dovetail playground pods").stdout
    assert re.search(r"^default/research-\d\d +Running +node-[a-f]$", listed, re.MULTILINE)
    assert re.search(r"^default/research-29 +held +-$", listed, re.MULTILINE)
    queues = bash(playground, "dovetail queues").stdout
    assert all(re.search(rf"^{name} ", queues, re.MULTILINE) for name in ("research", "analytics", "reports"))
    assert "held by our gate" in bash(playground, "dovetail explain pod default/research-29").stdout
    address = re.search(r"dovetail doctor .*$", (playground / "playground.log").read_text(), re.MULTILINE)[0]
    examined = bash(playground, address)
    assert "problems: 0, warnings: 0" in examined.stdout, examined.stdout


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if MARKED.search(page.read_text())], ids=lambda page: page.stem
)
def test_the_commands_of_the_guide_work_as_written(playground, tell, page):
    commands = [command for block in MARKED.findall(page.read_text()) for command in commands_of(block)]
    assert commands
    runs = commands[: first_missing(commands, environment(playground)["PATH"])]
    if left := commands[len(runs) :]:
        tell(f"{program_of(left[0])} is missing, so these were not run: {'; '.join(left)}")
    lines = ["set -e", *(f"echo {shlex.quote('$ ' + command)}\n{command}" for command in runs)]
    done = bash(playground, "\n".join(lines), PAGE_SECONDS)
    assert done.returncode == 0, done.stdout

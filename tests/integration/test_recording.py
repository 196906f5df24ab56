"""`dovetail record` beside a real cluster: a whole run, a break, and Ctrl-C."""

import contextlib
import signal
import subprocess
import sys

from extender.cluster.recording.lines import Begin, Checkpoint, End, Gap, PodLine, decoded
from lab.controlplane import builders, workload
from lab.controlplane.rest import STRATEGIC
from lab.controlplane.rest import request as send

PODS = "/api/v1/namespaces/default/pods"


def succeed(client, name):
    send(client, "PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}}, content=STRATEGIC)


@contextlib.contextmanager
def recording(control_plane, *options):
    """Run the command until the block is left, then Ctrl-C; it must end well."""
    command = [sys.executable, "-m", "extender", "record", f"--kubeconfig={control_plane.admin}", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.output, process.errors = process.communicate(timeout=60)
    assert process.returncode == 0, process.errors


def lines_of(file):
    text = file.read_bytes()
    assert text.endswith(b"\n")
    return [decoded(line, "here") for line in text.splitlines()]


def wait_for(file, kind, count=1):
    def there():
        return file.exists() and file.read_bytes().count(b'{"kind":"%s"' % kind) >= count

    workload.wait_until(there, 60, f"{count} lines of the kind {kind.decode()}")


def test_what_pods_did_is_written_and_a_break_is_said(control_plane, start_scheduler, tmp_path):
    client, file = control_plane.client(), tmp_path / "recording"
    workload.create_nodes(client, [builders.node("n0", cpu="4", memory="8Gi")])
    start_scheduler()
    pods = [builders.pod(name, cpu="1", memory="1Gi", labels={"dovetail.dev/queue": "blue"}) for name in "abcd"]
    with recording(control_plane, f"--append={file}") as process:
        wait_for(file, b"checkpoint")
        workload.create_pods(client, pods)
        workload.wait_until(lambda: set(workload.phases(client).values()) == {"Running"}, 60, "pods to run")
        succeed(client, "a")
        wait_for(file, b"pod")
    summary = f"1 pod ended while it was recorded. Replay it: dovetail simulate --workload recording:{file}"
    assert summary in process.errors.decode()
    begin, first, ended, last, end = lines_of(file)
    assert isinstance(begin, Begin)
    assert isinstance(end, End)
    assert isinstance(first, Checkpoint)
    assert [node.name for node in first.nodes] == ["n0"]
    assert (ended.name, ended.queue, ended.node, ended.outcome) == ("a", "blue", "n0", "succeeded")
    assert ended.created <= ended.bound <= ended.ended
    assert {pod.name for pod in last.pods} == {"b", "c", "d"}
    # b ends and stays, c is removed, d goes on: while nobody looks
    succeed(client, "b")
    send(client, "DELETE", f"{PODS}/c", gracePeriodSeconds=0)
    with recording(control_plane, f"--append={file}"):
        wait_for(file, b"checkpoint", 3)
    went_on = lines_of(file)[5:]
    assert [line.of for line in went_on if isinstance(line, Gap)] in (["nodes", "pods"], ["pods", "nodes"])
    assert all(line.since >= end.at for line in went_on if isinstance(line, Gap))
    pods = {line.name: line for line in went_on if isinstance(line, PodLine)}
    assert {name: line.outcome for name, line in pods.items()} == {"b": "succeeded", "c": "unseen"}
    assert pods["c"].between[0] >= end.at


def test_an_anonymous_recording_has_no_names(control_plane, tmp_path):
    client, file = control_plane.client(), tmp_path / "recording"
    workload.create_nodes(client, [builders.node("secret-node", cpu="4", memory="8Gi")])
    workload.create_pods(client, [builders.pod("secret-pod", cpu="1", memory="1Gi")])
    with recording(control_plane, "--anonymous") as process:
        first = process.stdout.readline() + process.stdout.readline()
    file.write_bytes(first + process.output)
    assert b"secret" not in file.read_bytes()
    assert [type(line) for line in lines_of(file)] == [Begin, Checkpoint, Checkpoint, End]

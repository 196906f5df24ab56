"""`dovetail packing report` on a real API server."""

import json
import subprocess
import sys

from lab.controlplane import builders, workload


def report(kubeconfig, *options):
    command = [sys.executable, "-m", "extender", "packing", "report", f"--kubeconfig={kubeconfig}", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_cluster_is_reported_on_as_it_is(control_plane, start_scheduler):
    client = control_plane.client()
    workload.create_nodes(client, [builders.node(f"n{row}", cpu="4", memory="8Gi") for row in range(6)])
    start_scheduler()
    workload.create_pods(client, [builders.pod(f"p{row}", cpu="1", memory="1Gi") for row in range(12)])
    workload.wait_until(lambda: set(workload.phases(client).values()) == {"Running"}, 60, "pods to run")
    done = report(control_plane.admin, "--compare=stock,dovetail", "--trials=3", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["machines"], found["tasks"]) == (6, 12)
    assert found["now"]["before"] == {"cpu": 50.0, "memory": 25.0}
    assert [under["policy"] for under in found["policies"]] == ["stock", "dovetail"]
    assert [under["compacted"]["sizes"] for under in found["policies"]] == [[3, 3, 3]] * 2  # four pods on each node


def test_an_api_server_that_is_gone_is_an_error_in_one_line(control_plane, tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    text = control_plane.admin.read_text()
    port = text.split("server: https://127.0.0.1:")[1].split()[0].strip("\"'")
    kubeconfig.write_text(text.replace(f"127.0.0.1:{port}", "127.0.0.1:1"))
    done = report(kubeconfig)
    assert done.returncode == 1
    assert done.stderr.strip().startswith("dovetail: ")
    assert len(done.stderr.strip().splitlines()) == 1

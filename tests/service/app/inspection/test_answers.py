"""What `dovetail explain`, `queues` and `doctor` say, and with which status they end, by what they may read."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.testing import CliRunner

from extender.cli import cli
from tests.service.app.inspection.test_locality_command import kubeconfig
from tests.service.app.inspection.test_reading import CONFIG_MAPS, HELD, OUR_PODS, SETTINGS, config_map, items, server

LEASE = "/apis/coordination.k8s.io/v1/namespaces/dovetail-system/leases/dovetail-control"
CLAIMS = "/api/v1/persistentvolumeclaims"
WHY = "you may not (403)"


def everything():
    """Return a cluster with one held pod, all of which may be read; its Lease is held, and so is no problem."""
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 3600, "renewTime": "2999-01-01T00:00:00.000000Z"}
    pod = {**HELD, "spec": {key: it for key, it in HELD["spec"].items() if key != "volumes"}}
    return server(
        **{
            CONFIG_MAPS: items(config_map("dovetail", **{"dovetail.yaml": SETTINGS})),
            "/api/v1/pods": items(pod),
            "/api/v1/namespaces/d/pods/a": pod,
            LEASE: {"spec": spec},
        }
    ).objects


@contextmanager
def cluster(*barred):
    """Serve that cluster on this machine, but for paths that may not be read; give its address."""
    known = everything()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.partition("?")[0]
            self.send_response(403 if path in barred else 200 if path in known else 404)
            self.end_headers()
            self.wfile.write(json.dumps(known.get(path, {})).encode())

        def log_message(self, *_words):
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever, args=[0.01])
    thread.start()
    try:
        yield f"http://127.0.0.1:{serving.server_port}"
    finally:
        serving.shutdown()
        thread.join()
        serving.server_close()


def asked(folder, command, *barred):
    """Return the status and what is printed."""
    with cluster(*barred) as url:
        done = CliRunner().invoke(cli, [*command.split(), f"--kubeconfig={kubeconfig(folder, url)}"])
    return done.exit_code, done.stdout


COMMANDS = ("explain pod d/a", "queues", "doctor")


@pytest.mark.parametrize("command", COMMANDS)
def test_where_all_may_be_read_nothing_is_said_of_it(tmp_path, command):
    status, text = asked(tmp_path, command)
    assert status == 0, text
    assert "INCOMPLETE" not in text
    assert text.endswith("\nsettings: ConfigMap dovetail-system/dovetail\n")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("path", "name"), [(CONFIG_MAPS, "configmaps"), ("/apis/batch/v1/jobs", "jobs"), (CLAIMS, "persistentvolumeclaims")]
)
def test_what_may_not_be_read_is_in_the_first_line_and_in_the_status(tmp_path, command, path, name):
    status, text = asked(tmp_path, command, path)
    assert status == 1
    assert text.startswith(f"INCOMPLETE, as this could not be read: {name}: {WHY}\n\n")
    status, text = asked(tmp_path, f"{command} --json", path)
    assert status == 1
    assert json.loads(text)["unread"] == {name: WHY}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (LEASE, "lease dovetail-system/dovetail-control"),
        ("/api/v1/nodes", "nodes"),
        ("/api/v1/pods", "pods"),
        ("/apis/apps/v1/deployments", "deployments"),
    ],
)
def test_doctor_is_not_content_with_what_it_may_not_read(tmp_path, path, name):
    status, text = asked(tmp_path, "doctor", path)
    assert status == 1
    assert text.splitlines()[0] == f"INCOMPLETE, as this could not be read: {name}: {WHY}"


@pytest.mark.parametrize("command", COMMANDS[:2])
@pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/pods"])
def test_without_pods_and_nodes_there_is_no_answer_at_all(tmp_path, command, path):
    with cluster(path) as url:
        done = CliRunner().invoke(cli, [*command.split(), f"--kubeconfig={kubeconfig(tmp_path, url)}"])
    assert done.exit_code == 1
    assert WHY in str(done.exception)


def test_doctor_names_both_of_our_pods_that_it_may_not_ask(tmp_path):
    status, text = asked(tmp_path, "doctor", OUR_PODS)
    assert status == 1
    words = " ".join(text.split("\n\n")[0].split())
    assert words == f"INCOMPLETE, as this could not be read: pods of control: {WHY}; pods of serve: {WHY}"

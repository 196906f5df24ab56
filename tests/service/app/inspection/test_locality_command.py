import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import yaml
from click.testing import CliRunner

from extender.app.inspection import locality_wait as calculating
from extender.cli import cli
from tests.service.app.inspection.api_server import items
from tests.service.app.inspection.test_measured import FACEBOOK, FOLLOWER, pod, with_value


def asked(*arguments):
    return CliRunner().invoke(cli, ["locality", *arguments])


def test_a_target_gives_the_papers_wait():
    # D = -(1000 / 3) x ln(1 / 2) = 231; 8 x 1000 slots / 20 s = 400 per second; 231 / 400 = 0.578 s
    found = json.loads(asked("--target", "0.95", "--nodes", "1000", "--json").stdout)
    assert found["rate"] == 400
    assert found["skips"] == pytest.approx(231.05, abs=0.01)
    assert found["wait_seconds"] == pytest.approx(0.578, abs=0.001)
    assert found["least"] == pytest.approx(0.95)
    assert found["expected"] >= 0.95


def test_a_wait_gives_the_papers_locality_at_facebook():
    arguments = ("--wait", "10", "--rate", "27", "--nodes", "620", "--tasks", "1", "--json")
    found = json.loads(asked(*arguments).stdout)
    assert found["skips"] == 270
    assert found["expected"] == pytest.approx(0.73, abs=0.005)


def test_people_read_d_the_wait_and_the_expected_locality():
    text = asked("--target", "0.95").stdout
    assert "D, chances to pass   23.1" in text
    assert "W1, the wait         0.578 s" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("--target", "nan"),
        ("--wait", "inf"),
        ("--wait", "1", "--rate", "nan"),
        ("--wait", "1", "--rate", "1e-320"),
        ("--target", "0.9", "--slots", "inf"),
        ("--target", "0.9", "--tasks", "99999999999"),
    ],
)
def test_what_is_no_number_or_no_clusters_is_refused(arguments):
    found = asked(*arguments)
    assert found.exit_code == 2
    assert arguments[-2] in found.output


def test_no_target_needs_no_wait_and_one_task_is_called_so():
    text = asked("--target", "0", "--tasks", "1").stdout
    assert "a job of 1 task, 100 nodes, 3 copies" in text
    assert "W1, the wait         0 s" in text


@pytest.mark.parametrize("arguments", [(), ("--target", "0.9", "--wait", "1"), ("--target", "1")])
def test_one_of_target_and_wait_is_needed_and_all_is_no_target(arguments):
    assert asked(*arguments).exit_code == 2


# -- by what was measured


@contextmanager
def answering(**texts):
    """Answer GET by path, `__` for a slash, as a server on this machine; give its address."""
    known = {path.replace("__", "/"): text for path, text in texts.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            text = known.get(self.path.partition("?")[0])
            self.send_response(404 if text is None else 200)
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *_words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_papers_example_by_what_a_control_measured():
    # 27 per second on 620 nodes for 10 s are D = 270; ten tasks: mean of 1 - exp(-3 x 270 K / 620) = 96 %.
    with answering(__metrics=FACEBOOK) as url:
        text = asked("--wait", "10", f"--metrics={url}").stdout
    assert (
        text
        == f"""a job of 10 tasks, 620 nodes, 3 copies of each input:
  room frees up        27 times per second under load
  D, chances to pass   270.0
  W1, the wait         10 s
  expected locality    96.3%  (closed form of equation 2, below it: 96.3%)
by the metrics of {url}:
  room freed up        1,620 times in 60 s under load
  locality so far      node 80.0%, rack 15.0%, anywhere 5.0%  (of 200 pods)
"""
    )


def test_what_was_measured_is_in_json_too_with_where_each_number_is_from():
    with answering(__metrics=FACEBOOK) as url:
        found = json.loads(asked("--target", "0.9", "--tasks", "1", f"--metrics={url}/metrics", "--json").stdout)
    # D = -(620 / 3) ln(0.1 / 1.1) = 495.6; W1 = 495.6 / 27 = 18.4 s
    assert found["wait_seconds"] == pytest.approx(18.35, abs=0.01)
    assert found["told_by"] == {"tasks": "given", "nodes": "measured", "replicas": "measured", "rate": "measured"}
    assert (found["tasks"], found["nodes"], found["replicas"]) == (1, 620, 3)
    assert found["measured"]["placements"] == {"node": 160, "rack": 30, "anywhere": 10}


@pytest.mark.parametrize(
    ("name", "value"),
    [("dovetail_nodes", 1e15), ("dovetail_nodes", -1), ("dovetail_locality_job_tasks", 1e15),
     ("dovetail_room_freed_total", -1), ("dovetail_loaded_seconds_total", 5e-324)],
)  # fmt: skip
def test_what_cannot_have_been_measured_is_refused(name, value):
    with answering(__metrics=with_value(name, value)) as url:
        done = asked("--target", "0.9", f"--metrics={url}")
    assert done.exit_code == 1
    assert "cannot be; accepted: 1 to 1000000 and a rate above 0" in str(done.exception)


def test_each_number_can_be_given_instead():
    own = ("--rate", "20", "--nodes", "100", "--tasks", "20", "--replicas", "3")
    with answering(__metrics=FACEBOOK) as url:
        found = json.loads(asked("--target", "0.95", *own, f"--metrics={url}", "--json").stdout)
    plain = json.loads(asked("--target", "0.95", *own, "--json").stdout)
    assert found["wait_seconds"] == plain["wait_seconds"]
    assert set(found["told_by"].values()) == {"given"}


def test_what_is_not_measured_yet_is_named():
    with answering(__metrics=FOLLOWER.replace(" 40.0", " 0.0")) as url:
        ended = asked("--target", "0.9", "--rate", "1", f"--metrics={url}")
    assert "room freed up        80 times in 0 s under load" in ended.stdout
    assert "locality so far      nothing started that has a preferred node" in ended.stdout
    assert "not measured yet     tasks, replicas: by default" in ended.stdout


def test_the_pods_of_a_cluster_are_asked_through_its_api_server(tmp_path):
    proxy = "/api/v1/namespaces/ours/pods/control:8888/proxy/metrics"
    pods = json.dumps(items(pod("control", "control")))
    with answering(**{"/api/v1/namespaces/ours/pods": pods, proxy: FACEBOOK}) as url:
        where = f"--kubeconfig={kubeconfig(tmp_path, url)}", "--namespace=ours", "--json"
        found = json.loads(asked("--target", "0.9", *where).stdout)
        named = json.loads(asked("--target", "0.9", "--from-cluster", *where).stdout)
    assert found == named
    assert (found["measured"]["source"], found["rate"]) == ("pod ours/control", 27)


def kubeconfig(folder, url):
    file = folder / "kubeconfig"
    entries = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "x", **entries}))
    return file


def test_a_control_that_was_never_under_load_cannot_tell():
    with answering(__metrics=with_value("dovetail_loaded_seconds_total", 0)) as url:
        ended = asked("--target", "0.9", f"--metrics={url}")
    assert ended.exit_code == 1
    assert "nothing has waited for room since it began to act" in str(ended.exception)


def test_where_nobody_answers_that_is_said():
    ended = asked("--target", "0.9", "--metrics=http://127.0.0.1:1")
    assert ended.exit_code == 1
    assert "http://127.0.0.1:1: " in str(ended.exception)


@pytest.mark.parametrize(
    "arguments",
    [("--metrics=http://127.0.0.1:1", "--from-cluster"), ("--from-cluster", "--slots", "8"),
     ("--metrics=http://127.0.0.1:1", "--task-seconds", "20")],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(arguments):
    assert asked("--target", "0.9", *arguments).exit_code == 2


def test_the_help_tells_the_numbers_that_are_taken_by_default():
    helps = {it.name: it.help for it in cli.commands["locality"].params}
    for name in ("tasks", "nodes", "replicas", "slots", "task_seconds"):
        assert re.search(rf"[ :] ?{getattr(calculating, name.upper()):g}\]$", helps[name])

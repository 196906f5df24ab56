"""What `dovetail explain`, `queues` and `doctor` say, and with which status they end, by what they may read."""

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from extender.adapters.http.wait_report import WaitReport
from extender.cli import cli
from extender.control.drain import POLICIES
from extender.errors import ClusterError
from tests.service.app.inspection.api_server import (
    BINDINGS,
    CONFIG_MAPS,
    HELD,
    OUR_PODS,
    SETTINGS,
    config_map,
    items,
    server,
)
from tests.service.app.inspection.test_locality_command import kubeconfig

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
            LEASE: {"metadata": {"name": "dovetail-control", "resourceVersion": "1"}, "spec": spec},
        }
    ).objects


@contextmanager
def cluster(*barred, **more):
    """Serve that cluster and `more` on this machine, but for paths that may not be read; give its address."""
    known = everything() | more

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


@pytest.mark.parametrize("command", [*COMMANDS, "drain --dry-run", "packing report", "locality --target 0.9"])
@pytest.mark.parametrize("answer", [{}, None, {"metadata": {}, "items": [None]}])
def test_an_answer_that_no_api_server_gives_is_an_error_and_never_nothing(tmp_path, command, answer):
    paths = (CONFIG_MAPS, OUR_PODS, BINDINGS, POLICIES, "/api/v1/pods", "/api/v1/nodes", "/apis/batch/v1/jobs")
    with cluster(**dict.fromkeys(paths, answer)) as url:
        done = CliRunner().invoke(cli, [*command.split(), f"--kubeconfig={kubeconfig(tmp_path, url)}"])
    assert done.exit_code == 1
    assert isinstance(done.exception, ClusterError), done.exception
    assert "the answer cannot be read" in str(done.exception)


@pytest.mark.parametrize(
    ("command", "path", "field", "value"),
    [
        ("drain --dry-run", "/api/v1/pods", "containers", ["text"]),
        ("drain --dry-run", "/api/v1/pods", "containers", [{"resources": {"limits": 5}}]),
        ("drain --dry-run", "/api/v1/pods", "schedulingGates", 5),
        ("explain pod d/a", "/api/v1/namespaces/d/pods/a", "containers", ["text"]),
        ("doctor", "/apis/batch/v1/jobs", "activeDeadlineSeconds", "soon"),
        ("doctor", "/apis/batch/v1/jobs", "podFailurePolicy", {"rules": ["text"]}),
    ],
)
def test_an_object_that_breaks_kubernetes_own_schema_is_named_with_its_field(tmp_path, command, path, field, value):
    broken = {"metadata": {"namespace": "d", "name": "bad", "uid": "u"}, "spec": {field: value}}
    answer = broken if command.startswith("explain") else {"metadata": {}, "items": [broken]}
    with cluster(**{path: answer}) as url:
        done = CliRunner().invoke(cli, [*command.split(), f"--kubeconfig={kubeconfig(tmp_path, url)}"])
    assert isinstance(done.exception, ClusterError), done.exception
    assert "d/bad: Expected" in str(done.exception)
    assert f"$.spec.{field}" in str(done.exception)


def test_doctor_names_both_of_our_pods_that_it_may_not_ask(tmp_path):
    status, text = asked(tmp_path, "doctor", OUR_PODS)
    assert status == 1
    words = " ".join(text.split("\n\n")[0].split())
    assert words == f"INCOMPLETE, as this could not be read: pods of control: {WHY}; pods of serve: {WHY}"


@pytest.mark.parametrize(
    "command", ["explain pod a -n d", "explain pod a --namespace d", "explain pod d/a", "explain pod d/a -n d"]
)
def test_a_pod_is_named_as_kubectl_names_it(tmp_path, command):
    status, text = asked(tmp_path, command)
    assert status == 0, text
    assert text.startswith("Pod d/a: held by our gate")


def test_two_namespaces_for_one_pod_are_a_wrong_command_line(tmp_path):
    assert asked(tmp_path, "explain pod d/a -n e")[0] == 2


@pytest.mark.parametrize("name", ["d/", "/a", "a/b/c", "d/.", "d/..", "d/a?x", "d/a#x", "d/A", "d/a%2fb", "d/a\n"])
def test_what_is_no_name_of_a_pod_is_an_error(tmp_path, name):
    with cluster() as url:
        done = CliRunner().invoke(cli, ["explain", "pod", name, f"--kubeconfig={kubeconfig(tmp_path, url)}"])
    assert done.exit_code == 1
    assert f"{name!r} is not the name of a pod" in str(done.exception)


@pytest.mark.parametrize("namespace", ["?", ".", "d/pods"])
def test_what_is_no_name_of_a_namespace_is_an_error(tmp_path, namespace):
    with cluster() as url:
        given = ["a", f"--namespace={namespace}", f"--kubeconfig={kubeconfig(tmp_path, url)}"]
        done = CliRunner().invoke(cli, ["explain", "pod", *given])
    assert done.exit_code == 1
    assert f"'{namespace}/a' is not the name of a pod" in str(done.exception)


def contexts(folder, url):
    """Write a kubeconfig whose current context leads nowhere, and whose context `other` names the namespace d."""
    file = kubeconfig(folder, url)
    document = yaml.safe_load(file.read_text())
    document["clusters"].append({"name": "nowhere", "cluster": {"server": "http://127.0.0.1:1"}})
    document["contexts"] = [
        {"name": "x", "context": {"cluster": "nowhere", "user": "u"}},
        {"name": "other", "context": {"cluster": "c", "user": "u", "namespace": "d"}},
    ]
    file.write_text(yaml.safe_dump(document))
    return file


def test_the_context_says_which_cluster_and_whose_namespace(tmp_path):
    with cluster() as url:
        file = contexts(tmp_path, url)
        named = CliRunner().invoke(cli, ["explain", "pod", "a", "--context=other", f"--kubeconfig={file}"])
        current = CliRunner().invoke(cli, ["explain", "pod", "a", f"--kubeconfig={file}"])
        unknown = CliRunner().invoke(cli, ["queues", "--context=none", f"--kubeconfig={file}"])
    assert named.stdout.startswith("Pod d/a: held by our gate")
    assert "127.0.0.1" in str(current.exception)
    assert str(unknown.exception) == f"{file} has no context none; accepted: other, x"


def test_without_a_namespace_anywhere_it_is_default(tmp_path):
    with cluster() as url:
        done = CliRunner().invoke(cli, ["explain", "pod", "a", f"--kubeconfig={kubeconfig(tmp_path, url)}"])
    assert "there is no pod default/a" in str(done.exception)


@pytest.mark.parametrize("command", COMMANDS)
def test_yaml_and_json_say_the_same(tmp_path, command):
    status, text = asked(tmp_path, f"{command} -o yaml")
    (_, same), (_, alias) = (asked(tmp_path, f"{command} {flag}") for flag in ("--output=json", "--json"))
    assert status == 0, text
    documents = [yaml.safe_load(text), json.loads(same), json.loads(alias)]
    assert all(document.keys() == documents[0].keys() >= {"unread", "settings"} for document in documents)


def test_json_and_another_output_do_not_go_together(tmp_path):
    assert asked(tmp_path, "queues --json -o yaml")[0] == 2


def test_a_wide_table_of_queues_names_parent_and_policy(tmp_path):
    _, table = asked(tmp_path, "queues")
    _, wide = asked(tmp_path, "queues -o wide")
    assert wide.splitlines()[0].split() == [*table.splitlines()[0].split(), "PARENT", "POLICY", "DECLARED"]
    (row,) = (line.split() for line in wide.splitlines() if line.startswith("a "))
    assert row[-3:] == ["-", "fair", "yes"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wide_answer_wraps_nothing(tmp_path, command):
    _, text = asked(tmp_path, command, "/apis/batch/v1/jobs")
    _, wide = asked(tmp_path, f"{command} -o wide", "/apis/batch/v1/jobs")
    assert len(wide.splitlines()) <= len(text.splitlines())


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["--install-namespace", "--namespace"])
def test_where_dovetail_is_installed_can_be_said(tmp_path, command, option):
    if option == "--namespace" and command.startswith("explain"):
        pytest.skip("there it is the namespace of the pod")
    _, text = asked(tmp_path, f"{command} {option} elsewhere")
    assert "configmaps: GET /api/v1/namespaces/elsewhere/configmaps: 404" in text


def test_a_job_without_labels_is_shown_by_its_owner_and_never_by_a_uid(tmp_path, monkeypatch):
    known = everything()
    owner = {"uid": "3f2b", "kind": "Job", "name": "nightly", "controller": True}
    pod = known["/api/v1/pods"]["items"][0]
    owned = {**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}}
    for kind, name in ((pod, "Pod d/a"), (owned, "Job d/nightly")):
        there = {**known, "/api/v1/pods": items(kind), "/api/v1/namespaces/d/pods/a": kind}
        monkeypatch.setattr(f"{__name__}.everything", lambda there=there: there)
        assert json.loads(asked(tmp_path, "explain pod d/a --json")[1])["job"] == name
        assert f"\nJob           {name}" in asked(tmp_path, "explain pod d/a")[1]


def test_a_pod_that_is_gone_says_that_it_was_preempted(tmp_path):
    preempted = {
        "metadata": {"name": "gone.1"},
        "involvedObject": {"kind": "Pod", "name": "gone", "uid": "u"},
        "reason": "Preempted",
        "message": "it ran on what others had reserved",
        "source": {"component": "dovetail"},
    }
    with cluster(**{"/api/v1/namespaces/d/events": items(preempted)}) as url:
        done = CliRunner().invoke(cli, ["explain", "pod", "d/gone", f"--kubeconfig={kubeconfig(tmp_path, url)}"])
    assert done.exit_code == 1
    assert str(done.exception) == "pod d/gone is gone, preempted: it ran on what others had reserved"


def test_a_pod_that_is_gone_says_that_a_taint_evicted_it(tmp_path):
    marked = {
        "metadata": {"name": "gone.1"},
        "involvedObject": {"kind": "Pod", "name": "gone", "uid": "u"},
        "reason": "TaintManagerEviction",
        "message": "Marking for deletion Pod d/gone",
    }
    with cluster(**{"/api/v1/namespaces/d/events": items(marked)}) as url:
        done = CliRunner().invoke(cli, ["explain", "pod", "d/gone", f"--kubeconfig={kubeconfig(tmp_path, url)}"])
    assert str(done.exception) == "pod d/gone is gone, evicted: TaintManagerEviction: Marking for deletion Pod d/gone"


def test_a_pod_that_failed_says_why(tmp_path, monkeypatch):
    known = everything()
    held = known["/api/v1/pods"]["items"][0]
    terminated = {"name": "main", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}
    failed = {**held, "status": {"phase": "Failed", "containerStatuses": [terminated]}}
    there = {**known, "/api/v1/pods": items(failed), "/api/v1/namespaces/d/pods/a": failed}
    monkeypatch.setattr(f"{__name__}.everything", lambda: there)
    answer = json.loads(asked(tmp_path, "explain pod d/a --json")[1])
    assert (answer["state"], answer["ended"]) == ("failed", "container main: exit code 3")


def test_of_a_pod_that_kube_scheduler_preempted_it_says_by_which_pod(tmp_path):
    preempted = {
        "metadata": {"name": "gone.1"},
        "involvedObject": {"kind": "Pod", "name": "gone", "uid": "v"},
        "reason": "Preempted",
        "message": "Preempted by pod u on node n",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingComponent": "dovetail",
    }
    with cluster(**everything(), **{"/api/v1/namespaces/d/events": items(preempted)}) as url:
        done = CliRunner().invoke(cli, ["explain", "pod", "d/gone", f"--kubeconfig={kubeconfig(tmp_path, url)}"])
    assert str(done.exception) == "pod d/gone is gone, preempted: Preempted by pod d/a on node n"


@pytest.mark.parametrize(
    ("since", "said"),
    [
        ("2020-01-01T00:00:00Z", r"Pod d/a: waits without a gate, for [^,]+, refused"),
        ("2020-01-01T01:00:00Z", r"Pod d/a: waits without a gate, for [^,]+, refused for [^,]+"),
    ],
    ids=["held-before", "never-held"],
)
def test_how_long_a_pod_is_refused_is_told_where_no_gate_of_it_can_have_begun_that(tmp_path, monkeypatch, since, said):
    known = everything()
    held = known["/api/v1/pods"]["items"][0]
    condition = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no claim",
        "lastTransitionTime": since,
    }  # fmt: skip
    spec = {**held["spec"], "schedulingGates": [], "schedulerName": "dovetail"}
    metadata = {**held["metadata"], "creationTimestamp": "2020-01-01T00:00:00Z"}
    pod = {**held, "metadata": metadata, "spec": spec, "status": {"conditions": [condition]}}
    there = {**known, "/api/v1/pods": items(pod), "/api/v1/namespaces/d/pods/a": pod}
    monkeypatch.setattr(f"{__name__}.everything", lambda: there)
    first, *others = asked(tmp_path, "explain pod d/a")[1].splitlines()
    assert re.fullmatch(said, first)
    assert "Refused       no claim" in others


def test_a_refused_pod_that_rests_is_told_until_when(tmp_path, monkeypatch):
    known = everything()
    held = known["/api/v1/pods"]["items"][0]
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no claim"}
    spec = {**held["spec"], "schedulingGates": [], "schedulerName": "dovetail"}
    pod = {**held, "spec": spec, "status": {"conditions": [condition]}}
    there = {
        **known,
        CONFIG_MAPS: items(config_map("dovetail", **{"dovetail.yaml": f"{SETTINGS}order: gates\n"})),
        "/api/v1/pods": items(pod),
        "/api/v1/namespaces/d/pods/a": pod,
        "/locality": msgspec.to_builtins(WaitReport(True, rests={"u": 200.0})),
    }
    monkeypatch.setattr(f"{__name__}.everything", lambda: there)
    with cluster() as url:
        command = ["explain", "pod", "d/a", f"--kubeconfig={kubeconfig(tmp_path, url)}", f"--control={url}"]
        text = " ".join(CliRunner().invoke(cli, command).stdout.split())
    assert "kube-scheduler refused it on the node that the plan chose: its next turn comes later (trying)" in text
    assert "its next turn comes in 3 min 20 s at the earliest" in text


def refused_in_its_turn(rests):
    """Return a cluster with room in which control says that pod `odd` was refused in its turn, and that it `rests`.

    Nothing at the pod itself says so: filter may as well have refused it because it is not its turn.
    """
    known = everything()
    held = known["/api/v1/pods"]["items"][0]
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no device"}
    spec = {**held["spec"], "schedulingGates": [], "schedulerName": "dovetail"}
    metadata = {**held["metadata"], "uid": "v", "name": "odd"}
    odd = {**held, "metadata": metadata, "spec": spec, "status": {"conditions": [condition]}}
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8", "pods": "9"}}}
    return {
        **known,
        "/api/v1/nodes": items(node),
        "/api/v1/pods": items(odd, held),
        "/api/v1/namespaces/d/pods/odd": odd,
        "/locality": msgspec.to_builtins(WaitReport(True, rests={"v": rests})),
    }


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("explain pod d/a", "kube-scheduler refuses pod d/odd, which asks for the same"),
        ("explain pod d/odd", "its next turn comes in 1 min 40 s at the earliest"),
        ("doctor", "1 pod held: kube-scheduler refuses pod d/odd, which asks for the same"),
        ("doctor", "1 pod without a gate waiting, none of which fits now in its turn"),
    ],
)
def test_where_filter_keeps_the_order_control_says_who_was_refused_in_its_turn(tmp_path, monkeypatch, command, said):
    there = refused_in_its_turn(rests=100.0)
    monkeypatch.setattr(f"{__name__}.everything", lambda: there)
    with cluster() as url:
        asks = [*command.split(), f"--kubeconfig={kubeconfig(tmp_path, url)}", f"--control={url}"]
        text = " ".join(CliRunner().invoke(cli, asks).stdout.split())
    assert said in text


def test_a_pod_for_idle_resources_alone_is_told_where_settings_have_no_such_pods(tmp_path, monkeypatch):
    known = everything()
    held = known["/api/v1/pods"]["items"][0]
    chosen = {"dovetail.dev/opportunistic": "only", "dovetail.dev/demand": '{"cpu": "100m", "memory": "1Mi"}'}
    containers = [{"name": "c", "resources": {}}]
    pod = {
        **held,
        "metadata": {**held["metadata"], "annotations": chosen},
        "spec": {**held["spec"], "containers": containers},
    }
    there = {**known, "/api/v1/pods": items(pod), "/api/v1/namespaces/d/pods/a": pod}
    monkeypatch.setattr(f"{__name__}.everything", lambda: there)
    text = " ".join(asked(tmp_path, "explain pod d/a")[1].split())
    assert "settings must let pods run on idle resources (opportunistic.enabled): it runs on these alone" in text

"""`dovetail packing report` on a real API server."""

import json
import subprocess
import sys

from lab.controlplane import builders, rest, workload

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


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


HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def test_pods_that_keep_apart_or_are_spread_need_the_nodes_that_kube_scheduler_gives_them(
    control_plane, start_scheduler
):
    client = control_plane.client()
    labels = [{HOST: f"n{row}", ZONE: "ab"[row % 2]} for row in range(6)]
    workload.create_nodes(client, [builders.node(one[HOST], cpu="4", memory="8Gi", labels=one) for one in labels])
    start_scheduler()
    selector = {"matchLabels": {"app": "apart"}}
    away = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOST, "labelSelector": selector}]}
    pods = [with_spec("apart", row, affinity={"podAntiAffinity": away}) for row in range(7)]
    spread = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spread["labelSelector"] = {"matchLabels": {"app": "even"}}
    pods += [with_spec("even", row, topologySpreadConstraints=[spread]) for row in range(4)]
    workload.create_pods(client, pods)
    phases = lambda: sorted(workload.phases(client).values())  # noqa: E731
    workload.wait_until(lambda: phases() == ["Pending"] + ["Running"] * 10, 60, "pods to run")
    done = report(control_plane.admin, "--compare=stock,dovetail", "--trials=3", "--json", "--tau=0")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert sum(found["misfits"].values()) == 1  # the seventh of six nodes, which kube-scheduler leaves, too
    assert found["tasks"] == 10
    assert [under["compacted"]["sizes"] for under in found["policies"]] == [[6, 6, 6]] * 2  # by amounts 1 would do
    assert not any("(" in what for what in found["not_modelled"])


def with_spec(app, row, **spec):
    pod = builders.pod(f"{app}-{row}", cpu="100m", memory="64Mi", labels={"app": app})
    pod["spec"] |= spec
    return pod


def test_nodes_that_could_be_drained_are_named_and_a_budget_keeps_its_pods(control_plane, start_scheduler):
    client = control_plane.client()
    workload.create_nodes(client, [builders.node(f"n{row}", cpu="4", memory="8Gi") for row in range(3)])
    start_scheduler()
    owner = rest.request(client, "POST", CONFIG_MAPS, {"metadata": {"name": "owner"}})["metadata"]
    controller = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"], "controller": True}
    for name, node in (("guarded", "n0"), ("free", "n1")):
        pod = builders.pod(name, cpu="1", memory="1Gi", labels={"app": name})
        pod["metadata"]["ownerReferences"] = [controller]
        pod["spec"]["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [to(node)]}}
        workload.create_pods(client, [pod])
    workload.wait_until(lambda: set(workload.phases(client).values()) == {"Running"}, 60, "pods to run")
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}
    rest.request(client, "POST", BUDGETS, {"metadata": {"name": "keep"}, "spec": budget})
    done = report(control_plane.admin, "--trials=1", "--json")
    rest.request(client, "DELETE", f"{BUDGETS}/keep")
    rest.request(client, "DELETE", f"{CONFIG_MAPS}/owner")
    assert done.returncode == 0, done.stderr
    drain = json.loads(done.stdout)["drain"]
    assert (drain["nodes"], drain["idle"]) == (["n1", "n2"], 1)
    assert drain["obstacles"][0]["first"] == "n0: default/guarded, default/keep"


def to(node):
    requirement = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"weight": 100, "preference": {"matchFields": [requirement]}}


def test_an_api_server_that_is_gone_is_an_error_in_one_line(control_plane, tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    text = control_plane.admin.read_text()
    port = text.split("server: https://127.0.0.1:")[1].split()[0].strip("\"'")
    kubeconfig.write_text(text.replace(f"127.0.0.1:{port}", "127.0.0.1:1"))
    done = report(kubeconfig)
    assert done.returncode == 1
    assert done.stderr.strip().startswith("dovetail: ")
    assert len(done.stderr.strip().splitlines()) == 1

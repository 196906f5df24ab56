"""What the chart installs, put before a real API server and a real kube-scheduler.

The objects are read from `manifests/`, which a chart test holds equal to the chart.
"""

import copy
import subprocess
import time

import pytest
import yaml

from charts.render import NAMESPACE, ROOT
from lab.controlplane import pins
from lab.controlplane.rest import RequestRefused, request
from tests.chart.rbac import ACCOUNT, CONTROL_ACCOUNT, granted

MODES = ("scheduler", "existing")
STRICT = {"dryRun": "All", "fieldValidation": "Strict"}
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
GROUPS = ("policy", "scheduling.k8s.io", "admissionregistration.k8s.io")
HOOK = list(yaml.safe_load_all((ROOT / "manifests" / "drain.yaml").read_text()))
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture
def objects(mode):
    return list(yaml.safe_load_all((ROOT / "manifests" / f"{mode}.yaml").read_text()))


@pytest.fixture
def namespace(control_plane, objects):
    """Make the namespace, restricted as the manifests say, and the ServiceAccounts that its pods need, for one test."""
    first, *rest = objects
    assert first["kind"] == "Namespace"
    accounts = [it for it in rest + HOOK if it["kind"] == "ServiceAccount"]
    control_plane.apply([first, *accounts])
    yield
    for name in {it["metadata"]["name"] for it in accounts}:  # helm takes over no account that others made
        request(control_plane.client(), "DELETE", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{name}")


def pod_of(objects, name):
    """Return the pod that the controller of the Deployment or Job of this name would create."""
    (template,) = [
        it["spec"]["template"]
        for it in objects
        if it["kind"] in ("Deployment", "Job") and it["metadata"]["name"] == name
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": "dovetail", "namespace": NAMESPACE},
        "spec": copy.deepcopy(template["spec"]),
    }


def configurations():
    """Return every KubeSchedulerConfiguration that is shipped, by where it stands."""
    found = {"kind": (ROOT / "manifests" / "kind" / "kube-scheduler.yaml").read_text()}
    for mode in MODES:
        for it in yaml.safe_load_all((ROOT / "manifests" / f"{mode}.yaml").read_text()):
            if it["kind"] == "ConfigMap" and "kube-scheduler.yaml" in it["data"]:
                found[mode] = it["data"]["kube-scheduler.yaml"]
    return {name: yaml.safe_load(text) for name, text in found.items()}


def may(control_plane, user, verb, resource, *, group="", name="", namespace="default", subresource=""):
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    attributes |= {"name": name, "namespace": namespace}
    answer = request(
        control_plane.client(),
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": attributes},
        },
    )
    return answer["status"]["allowed"]


@pytest.mark.usefixtures("namespace")
def test_the_api_server_accepts_every_object(control_plane, objects):
    accepted = control_plane.apply(objects + HOOK, **STRICT)

    assert [it["metadata"]["name"] for it in accepted] == [it["metadata"]["name"] for it in objects + HOOK]


@pytest.mark.usefixtures("namespace")
@pytest.mark.parametrize("name", ["dovetail", "dovetail-control", "dovetail-drain"])
def test_a_restricted_namespace_admits_the_pods(control_plane, objects, name):
    pod = pod_of(objects + HOOK, name)

    (admitted,) = control_plane.apply([pod], **STRICT)
    assert admitted["spec"]["serviceAccountName"] == name

    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(RequestRefused, match="violates PodSecurity"):
        control_plane.apply([pod], **STRICT)


@pytest.mark.parametrize("name", ["scheduler", "existing", "kind"])
def test_kube_scheduler_accepts_the_configuration(programs, control_plane, tmp_path, name):
    told = configurations()[name]
    told["clientConnection"]["kubeconfig"] = str(control_plane.admin)

    done, read = complete(programs, told, tmp_path)

    assert done.returncode == 0, done.stderr
    ours, theirs = told["extenders"][0], read["extenders"][0]
    assert {key: theirs.get(key, False) for key in ours} == ours  # false is left out
    assert read["clientConnection"]["qps"] == 500
    disabled = {"NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality"}
    (profile,) = read["profiles"]
    assert disabled <= {it["name"] for it in profile["plugins"]["score"]["disabled"]}


def test_kube_scheduler_refuses_a_key_that_it_does_not_know(programs, control_plane, tmp_path):
    told = configurations()["scheduler"]
    told["clientConnection"]["kubeconfig"] = str(control_plane.admin)
    told["extenders"][0]["ignoreable"] = True

    done, _ = complete(programs, told, tmp_path)

    assert done.returncode != 0
    assert "ignoreable" in done.stderr


def complete(programs, told, folder):
    """Let kube-scheduler read a configuration; return how that ended and the completed configuration."""
    given, completed = folder / "given.yaml", folder / "completed.yaml"
    given.write_text(yaml.safe_dump(told))
    done = subprocess.run(
        [programs["kube-scheduler"], f"--config={given}", f"--write-config-to={completed}", "--secure-port=0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done, yaml.safe_load(completed.read_text()) if completed.exists() else None


def test_dovetail_may_read_nodes_and_pods_and_report_events_and_no_more(control_plane):
    with granted(control_plane, "existing") as account:
        allowed = {
            (verb, resource)
            for resource in ("nodes", "pods", "events", "secrets", "configmaps", "services")
            for verb in VERBS
            if may(control_plane, account, verb, resource)
        }
        binds = may(control_plane, account, "create", "pods", subresource="binding")

    reads = {(verb, resource) for resource in ("nodes", "pods") for verb in ("list", "watch")}
    assert allowed == reads | {("create", "events")}
    assert not binds


def test_control_may_release_pods_and_hold_its_lease_and_no_more(control_plane):
    def allowed(**more):
        return {verb for verb in VERBS if may(control_plane, CONTROL_ACCOUNT, verb, **more)}

    leases = {"resource": "leases", "group": "coordination.k8s.io"}
    with granted(control_plane, "scheduler"):
        assert allowed(resource="pods") == {"get", "list", "watch", "patch"}
        assert allowed(resource="pods", subresource="status") == {"patch"}
        assert allowed(resource="nodes") == {"list", "watch"}
        assert allowed(resource="events") == {"create"}
        assert allowed(resource="jobs", group="batch") == {"list", "watch"}
        for group in ("scheduling.k8s.io", "scheduling.x-k8s.io", "scheduling.volcano.sh"):
            assert allowed(resource="podgroups", group=group) == {"list", "watch"}
        assert allowed(**leases, name="dovetail-control", namespace=NAMESPACE) == {"create", "get", "update"}
        assert allowed(**leases, name="dovetail", namespace=NAMESPACE) == {"create"}
        assert allowed(**leases, name="dovetail-control", namespace="default") == set()
        for resource, subresource in (("pods", "eviction"), ("pods", "binding"), ("secrets", ""), ("namespaces", "")):
            assert allowed(resource=resource, subresource=subresource) == set()
        for resource in ("poddisruptionbudgets", "priorityclasses", "mutatingadmissionpolicies"):
            assert not [group for group in GROUPS if allowed(resource=resource, group=group)]


def test_the_second_scheduler_may_bind_and_use_no_lease_but_its_own(control_plane):
    def lease(name, namespace=NAMESPACE):
        return may(
            control_plane,
            ACCOUNT,
            "update",
            "leases",
            group="coordination.k8s.io",
            name=name,
            namespace=namespace,
        )

    with granted(control_plane, "scheduler") as account:
        assert may(control_plane, account, "create", "pods", subresource="binding")
        assert lease("dovetail")
        assert not lease("another")
        assert not lease("dovetail", "kube-system")
    assert not lease("dovetail")


def test_the_second_scheduler_leads_with_the_rights_and_the_configuration_of_the_chart(control_plane, start_scheduler):
    with granted(control_plane, "scheduler") as account:
        name = start_scheduler(configurations()["scheduler"], user=account, name="leading")

        holder = wait_for_holder(control_plane)

    assert holder
    assert "forbidden" not in control_plane.log(name).read_text().lower()


def wait_for_holder(control_plane):
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        leases = {it["metadata"]["name"]: it for it in request(control_plane.client(), "GET", LEASES)["items"]}
        if "dovetail" in leases:
            return leases["dovetail"]["spec"]["holderIdentity"]
        time.sleep(0.1)
    return None


def test_the_schedulers_image_is_the_version_that_the_tests_run():
    (pod,) = [
        it["spec"]["template"]["spec"]
        for it in yaml.safe_load_all((ROOT / "manifests" / "scheduler.yaml").read_text())
        if it["kind"] == "Deployment" and it["metadata"]["name"] == "dovetail"
    ]
    kubernetes = pins.control_plane()[0].version

    assert pod["containers"][0]["image"] == f"registry.k8s.io/kube-scheduler:{kubernetes}"

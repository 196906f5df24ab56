"""What the chart renders for order: control, who gets the gate, and the way out."""

import json
import re
import subprocess

import pytest
import yaml

from charts.render import CHART, GATING_API, VALUES, template
from extender.adapters.kube.holding import HELD_LABEL, NAMESPACE_LABEL, namespace_of
from extender.cluster.pods.identity import GROUPS
from extender.settings import parse
from tests.chart.rbac import EVICT, HOLD_RULE, ON_IDLE, ORDER_RULES
from tests.chart.test_chart import bindings_of, containers, only, pod_spec, with_values

pytestmark = pytest.mark.chart

KNOWN = ("--api-versions", GATING_API)
POLICY_KINDS = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")


def with_order(helm, mode, order, *flags):
    """Return what the chart renders with this order."""
    return render(helm, with_values(mode, config__order=order), *flags)


def render(helm, values, *flags):
    return list(yaml.safe_load_all(template(helm, values, *flags)))


def refusal(helm, values, *flags):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        template(helm, values, *flags)
    return refused.value.stderr


def settings_of(objects):
    return parse(yaml.safe_load(only(objects, "ConfigMap", "dovetail")["data"]["dovetail.yaml"]))


def policies(objects):
    return [it["kind"] for it in objects if it["kind"] in POLICY_KINDS]


def notes(helm, values):
    """Return the notes for a cluster without the policy's API: no other can be imitated without one."""
    command = [helm, "install", "dovetail", CHART, "--dry-run=client", "--values", "-"]
    done = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=True)
    return done.stdout.partition("NOTES:")[2]


def test_control_is_a_deployment_of_its_own_with_the_settings_of_the_extender(objects):
    control, extender = containers(objects, "dovetail-control")["control"], containers(objects)["extender"]
    spec = pod_spec(objects, "dovetail-control")

    assert control["args"] == ["control", "--config", "/etc/dovetail/dovetail.yaml"]
    for shared in ("image", "resources", "securityContext", "volumeMounts"):
        assert control[shared] == extender[shared]
    assert spec["serviceAccountName"] == "dovetail-control"
    assert spec["securityContext"] == pod_spec(objects)["securityContext"]
    assert all(volume in pod_spec(objects)["volumes"] for volume in spec["volumes"])


def test_each_selector_finds_the_pods_of_its_own_component_alone(objects):
    labels = {
        it["metadata"]["name"]: it["spec"]["template"]["metadata"]["labels"]
        for it in objects
        if it["kind"] in ("Deployment", "Job")
    }
    selectors = {}
    for it in objects:
        match it["kind"]:
            case "Deployment" | "PodDisruptionBudget":
                selectors[it["kind"], it["metadata"]["name"]] = it["spec"]["selector"]["matchLabels"]
            case "NetworkPolicy":
                selectors[it["kind"], it["metadata"]["name"]] = it["spec"]["podSelector"]["matchLabels"]
            case "Service":
                selectors[it["kind"], it["metadata"]["name"]] = it["spec"]["selector"]

    assert len(selectors) == 6  # two Deployments, two budgets; a second network policy, or the Service
    for (_, name), selector in selectors.items():
        assert [found for found, worn in labels.items() if selector.items() <= worn.items()] == [name]


def test_where_pods_may_go_is_the_same_for_all_of_ours(helm):
    where = {"nodeSelector": {"pool": "system"}, "tolerations": [{"operator": "Exists"}], "priorityClassName": "high"}
    objects = render(helm, with_values("scheduler", **where))

    specs = [it["spec"]["template"]["spec"] for it in objects if it["kind"] in ("Deployment", "Job")]
    assert len(specs) == 3
    for spec in specs:
        assert {key: spec[key] for key in where} == where


def test_without_control_nothing_of_it_is_left(helm, mode):
    objects = render(helm, with_values(mode, control__enabled=False), *KNOWN)

    assert not [it["metadata"]["name"] for it in objects if "control" in it["metadata"]["name"]]
    assert not policies(objects)


def test_the_lease_is_in_the_releases_namespace_whatever_that_is_called(helm):
    objects = render(helm, VALUES["scheduler"], "--namespace", "elsewhere")
    role = only(objects, "Role", "dovetail-control-lease")

    assert settings_of(objects).control.lease.namespace == "elsewhere"
    assert role["metadata"]["namespace"] == "elsewhere"


def test_a_lease_in_a_namespace_without_rights_is_refused(helm):
    complaint = refusal(helm, with_values("scheduler", config__control__lease__namespace="other"))

    assert 'config.control.lease.namespace is "other", and the release\'s namespace "dovetail-system"' in complaint


@pytest.mark.parametrize(
    "changes", [{"scheduler__name": "dovetail-control"}, {"config__control__lease__name": "dovetail"}]
)
def test_one_lease_for_kube_scheduler_and_control_is_refused(helm, changes):
    assert "kube-scheduler and control would share one Lease" in refusal(helm, with_values("scheduler", **changes))


@pytest.mark.parametrize(
    ("mode", "changes", "expected"),
    [
        ("scheduler", {}, ("dovetail",)),
        ("scheduler", {"scheduler__name": "packed"}, ("packed",)),
        ("existing", {}, ("default-scheduler",)),
        ("scheduler", {"config__control__schedulers": ["one", "two"]}, ("one", "two")),
    ],
)
def test_control_releases_for_the_scheduler_that_is_installed_unless_told_otherwise(helm, mode, changes, expected):
    assert settings_of(render(helm, with_values(mode, **changes))).control.schedulers == expected


def test_all_other_settings_are_as_the_values_say_but_for_what_kube_scheduler_decides_in_mode_existing(objects, mode):
    written = yaml.safe_load(only(objects, "ConfigMap", "dovetail")["data"]["dovetail.yaml"])
    values = yaml.safe_load((CHART / "values.yaml").read_text())["config"]
    for both in (written, values):
        del both["control"]["schedulers"], both["control"]["lease"]["namespace"]
    assert (values["placement"]["chosenBy"], values["order"]) == ("filter", "auto")
    if mode == "existing":
        values["placement"]["chosenBy"] = "kube-scheduler"
        values["order"] = "gates"

    assert written == {"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration", **values}


def test_control_has_these_rights_each_for_its_reason(helm, mode):
    rules = only(with_order(helm, mode, "gates"), "ClusterRole", "dovetail-control")["rules"]

    assert {(tuple(it["apiGroups"]), *it["resources"]): it["verbs"] for it in rules} == {
        (("",), "pods"): ["get", "list", "watch", "patch"],
        (("",), "pods/status"): ["patch"],
        (("",), "nodes"): ["list", "watch"],
        (("",), "events"): ["create"],
        (("batch",), "jobs"): ["list", "watch"],
        (("scheduling.x-k8s.io", "scheduling.volcano.sh", "scheduling.k8s.io"), "podgroups"): ["list", "watch"],
        (("",), "persistentvolumeclaims", "persistentvolumes"): ["list", "watch"],
        (("",), "pods/resize"): ["patch"],
    }


@pytest.mark.parametrize(
    ("mode", "order", "more"),
    [
        ("scheduler", "filter", ORDER_RULES),
        ("scheduler", "auto", [*ORDER_RULES, HOLD_RULE]),
        ("existing", "filter", ORDER_RULES),
        ("existing", "auto", []),
    ],
)
def test_the_extender_may_read_jobs_pod_groups_and_volumes_only_where_it_keeps_the_order(helm, mode, order, more):
    made = (with_order(helm, mode, it) for it in ("gates", order))

    before, after = (only(of, "ClusterRole", "dovetail-extender")["rules"] for of in made)
    assert after == before + more


def test_in_mode_existing_auto_is_gates_as_filter_would_order_the_pods_of_all_namespaces(helm):
    auto, gates = (with_order(helm, "existing", it, *KNOWN) for it in ("auto", "gates"))

    assert auto == gates
    assert settings_of(auto).order == "gates"
    assert settings_of(with_order(helm, "existing", "filter")).order == "filter"


def test_with_auto_control_writes_one_hold_and_the_extender_may_end_it(helm):
    objects = with_order(helm, "scheduler", "gates")
    auto = with_order(helm, "scheduler", "auto", "--namespace", "elsewhere")
    named = {**HOLD_RULE, "resourceNames": ["elsewhere.dovetail-control"]}
    create = {"apiGroups": ["dovetail.dev"], "resources": ["holds"], "verbs": ["create"]}

    of_control, of_gates = (only(of, "ClusterRole", "dovetail-control")["rules"] for of in (auto, objects))
    assert [rule for rule in of_control if rule not in of_gates] == [create, named]
    assert only(auto, "ClusterRole", "dovetail-extender")["rules"][-1] == named
    assert settings_of(auto).hold_name == "elsewhere.dovetail-control"


def test_with_auto_the_extender_may_look_at_the_one_lease_of_control(helm):
    objects = with_order(helm, "scheduler", "gates")
    auto = render(helm, with_values("scheduler", config__order="auto", config__control__lease__name="turns"))

    (rule,) = only(auto, "Role", "dovetail-extender-lease")["rules"]
    assert (rule["resources"], rule["resourceNames"], rule["verbs"]) == (["leases"], ["turns"], ["get"])
    assert ("Role", "dovetail-extender-lease") in bindings_of(auto, "dovetail")
    assert ("Role", "dovetail-extender-lease") not in bindings_of(objects, "dovetail")


@pytest.mark.parametrize("timeout", ["fairShareSeconds", "minimumShareSeconds"])
def test_control_may_evict_only_where_a_timeout_is_on(helm, objects, mode, timeout):
    with_timeout = render(helm, with_values(mode, **{f"config__reclaim__{timeout}": 0.5}))

    rules, without = (only(it, "ClusterRole", "dovetail-control")["rules"] for it in (with_timeout, objects))
    assert rules == [*without, EVICT]


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"enabled": True}, [*ON_IDLE, EVICT]),
        ({"enabled": True, "dryRun": True}, ON_IDLE),
        ({"dryRun": True}, []),
    ],
)
def test_control_may_read_single_jobs_and_evict_only_where_pods_run_on_idle_resources(helm, changes, more):
    usage = {"url": "http://prometheus.test:9090"}
    made, plain = (
        render(helm, with_values("scheduler", config__usage=usage, config__opportunistic=it)) for it in (changes, {})
    )

    for name in ("dovetail-control", "dovetail-extender"):
        rules, without = (only(it, "ClusterRole", name)["rules"] for it in (made, plain))
        assert rules == [*without, *(more if name == "dovetail-control" else [])]


def test_control_and_the_hook_may_resize_and_always_so_that_requests_come_back_where_it_is_switched_off(objects):
    resizing = {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]}
    may = {it["metadata"]["name"] for it in objects if resizing in it.get("rules", ())}
    assert may == {"dovetail-control", "dovetail-drain"}


def test_pods_on_idle_resources_without_usage_are_refused(helm):
    complaint = refusal(helm, with_values("scheduler", config__opportunistic__enabled=True))
    assert "config.opportunistic.enabled is true without usage" in complaint


def test_pods_do_not_run_on_idle_resources_where_kube_scheduler_goes_on_without_us(helm):
    complaint = refusal(helm, with_values("existing", config__opportunistic__enabled=True))
    assert "config.opportunistic.enabled is true in mode existing" in complaint

    values = with_values("existing", config__opportunistic={"threshold": 0.7})
    assert settings_of(render(helm, values)).opportunistic.threshold == 0.7


@pytest.mark.parametrize(
    ("namespaces", "more"),
    [
        (None, []),
        (["lab-a"], []),
        ({"team": "lab"}, [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]}]),
    ],
)
def test_namespaces_are_read_only_where_their_labels_say_who_may_use_a_queue(helm, mode, namespaces, more):
    values = with_values(mode, config__queues=[{"name": "lab", "namespaces": namespaces}], config__order="gates")
    rules, without = (
        only(it, "ClusterRole", "dovetail-control")["rules"]
        for it in (render(helm, values), with_order(helm, mode, "gates"))
    )
    assert rules == without + more

    values["config"]["order"] = "filter"
    (by_filter,) = (only(render(helm, values), "ClusterRole", "dovetail-extender")["rules"],)
    assert by_filter[-len(ORDER_RULES) - len(more) :] == ORDER_RULES + more


def test_control_may_use_the_lease_that_its_settings_name_and_no_other(helm):
    objects = render(helm, with_values("scheduler", config__control__lease__name="turns"))
    create, use = only(objects, "Role", "dovetail-control-lease")["rules"]

    assert create == {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]}
    assert (use["resourceNames"], use["verbs"]) == (["turns"], ["get", "update"])
    assert settings_of(objects).control.lease.name == "turns"


def test_nobody_may_call_control_but_who_is_named(helm, objects, mode):
    assert only(objects, "NetworkPolicy", "dovetail-control")["spec"]["ingress"] == []

    peers = [{"ipBlock": {"cidr": "192.0.2.0/28"}}]
    named = render(helm, with_values(mode, networkPolicy={"from": peers}))
    (rule,) = only(named, "NetworkPolicy", "dovetail-control")["spec"]["ingress"]
    assert rule == {"ports": [{"port": 10351}], "from": peers}

    off = render(helm, with_values(mode, networkPolicy={"enabled": False}))
    assert not [it for it in off if it["kind"] == "NetworkPolicy"]


def test_the_policy_is_there_where_its_api_is(objects, gating, mode):
    assert not policies(objects)
    assert set(policies(gating[mode])) == set(POLICY_KINDS)


def test_with_auto_a_second_policy_reads_the_hold_that_control_writes(helm):
    auto = with_order(helm, "scheduler", "auto", *KNOWN, "--namespace", "elsewhere")
    kind = only(auto, "CustomResourceDefinition")
    by_name = {it["metadata"]["name"]: it["spec"] for it in auto if it["kind"] == POLICY_KINDS[0]}
    bound = {it["spec"]["policyName"]: it["spec"].get("paramRef") for it in auto if it["kind"] == POLICY_KINDS[1]}

    assert bound == {
        "dovetail-gating": None,
        "dovetail-gating-backlog": {
            "selector": {
                "matchLabels": {HELD_LABEL: "true", NAMESPACE_LABEL: namespace_of(settings_of(auto).hold_name)},
            },
            "parameterNotFoundAction": "Allow",
        },
    }
    assert by_name["dovetail-gating-backlog"]["paramKind"] == {
        "apiVersion": f"{kind['spec']['group']}/{kind['spec']['versions'][0]['name']}",
        "kind": kind["spec"]["names"]["kind"],
    }
    assert {spec["failurePolicy"] for spec in by_name.values()} == {"Ignore"}
    assert f"{kind['spec']['names']['plural']}.{kind['spec']['group']}" == kind["metadata"]["name"]


def test_with_auto_gangs_are_known_by_the_names_that_the_service_reads(helm):
    auto = with_order(helm, "scheduler", "auto", *KNOWN)
    (variable,) = next(it["spec"]["variables"] for it in auto if it["metadata"]["name"] == "dovetail-gating")

    named = re.findall(r"^ *'([^']+)',$", variable["expression"], re.MULTILINE)
    assert tuple(named) == GROUPS
    assert "object.spec.?schedulingGroup.hasValue()" in variable["expression"]


def test_with_auto_the_same_pods_are_held_at_any_time_by_the_condition_and_by_what_is_written(helm):
    auto = with_order(helm, "scheduler", "auto", *KNOWN)
    spec = only(auto, "MutatingAdmissionPolicy", "dovetail-gating")["spec"]
    condition = next(it["expression"] for it in spec["matchConditions"] if it["name"] == "something-to-write")

    assert condition == f"object.spec.schedulerName != 'dovetail' ||\n{spec['variables'][0]['expression']}"


@pytest.mark.parametrize("flags", [(), KNOWN])
@pytest.mark.parametrize(("order", "there"), [("auto", True), ("gates", False), ("filter", False)])
def test_the_kind_comes_with_the_policy_that_reads_it_and_not_without(helm, order, there, flags):
    objects = render(helm, with_values("scheduler", config__order=order), *flags)

    kinds = [it["metadata"]["name"] for it in objects if it["kind"] == "CustomResourceDefinition"]
    assert kinds == (["holds.dovetail.dev"] if there and flags else [])


@pytest.mark.parametrize("changes", [{"gating__policy__enabled": False}, {"config__order": "filter"}])
def test_the_policy_is_left_out_where_it_is_not_wanted(helm, mode, changes):
    assert not policies(render(helm, with_values(mode, **changes), *KNOWN))


def test_the_policy_can_be_insisted_on(helm, mode):
    values = with_values(mode, gating__policy__enabled=True, config__order="gates")

    assert policies(render(helm, values, *KNOWN)) == list(POLICY_KINDS)

    complaint = refusal(helm, values)
    assert "has no MutatingAdmissionPolicy in admissionregistration.k8s.io/v1" in complaint
    assert "from Kubernetes 1.36" in complaint
    assert f"--api-versions {GATING_API}" in complaint


def test_a_policy_whose_pods_nobody_would_release_is_refused(helm):
    complaint = refusal(helm, with_values("scheduler", gating__policy__enabled=True, control__enabled=False), *KNOWN)

    assert "nothing would release the pods that the policy gates" in complaint


@pytest.mark.parametrize("name", ["dovetail-gating", "dovetail-gating-backlog"])
def test_the_policies_name_the_scheduler_that_is_installed_and_never_another(helm, gating, name):
    def policy(objects, name):
        return json.dumps(only(objects, "MutatingAdmissionPolicy", name)["spec"])

    values = with_values("scheduler", scheduler__name="packed", config__order="auto")
    packed = policy(render(helm, values, *KNOWN), name)
    assert "in ['default-scheduler', 'packed']" in packed
    assert "schedulerName: 'packed'" in packed
    assert ("schedulerName != 'packed'" in packed) == (name == "dovetail-gating")

    existing = policy(gating["existing"], "dovetail-gating")
    assert "in ['default-scheduler']" in existing
    assert "schedulerName:" not in existing


def test_a_policy_that_fails_stops_no_pod_and_no_list_is_patched_by_path(gating, mode):
    for spec in (it["spec"] for it in gating[mode] if it["kind"] == "MutatingAdmissionPolicy"):
        assert spec["failurePolicy"] == "Ignore"
        assert [it["patchType"] for it in spec["mutations"]] == ["ApplyConfiguration"]


@pytest.mark.parametrize("wanted", ["auto", True, False])
def test_helm_finds_nothing_to_complain_of_with_the_policy_on_or_off(helm, mode, wanted, tmp_path):
    values = tmp_path / "values.yaml"
    values.write_text(json.dumps(with_values(mode, gating__policy__enabled=wanted)))
    command = [helm, "lint", "--strict", CHART, "--values", values]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


def test_the_notes_say_that_templates_must_carry_the_gate_where_no_policy_does(helm, mode):
    told = notes(helm, VALUES[mode])

    assert "has no MutatingAdmissionPolicy" in told
    template_of_pods = yaml.safe_load("  spec:" + told.rpartition("  spec:")[2])
    expected = {"schedulingGates": [{"name": "dovetail.dev/hold"}]}
    assert template_of_pods == {"spec": expected | ({"schedulerName": "dovetail"} if mode == "scheduler" else {})}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"control__enabled": False}, "control.enabled is false: nothing releases pods"),
        ({"config__order": "filter"}, "config.order is filter: pods are not gated"),
        ({"drainOnUninstall": False}, "before `helm uninstall`, run `dovetail drain`"),
    ],
)
def test_the_notes_warn_of_what_a_value_leaves_to_the_user(helm, changes, said):
    assert said not in notes(helm, VALUES["scheduler"])
    assert said in notes(helm, with_values("scheduler", **changes))


def test_before_an_uninstall_a_job_drains_with_an_account_of_its_own(objects):
    hooks = {it["kind"]: it for it in objects if "helm.sh/hook" in it["metadata"].get("annotations", {})}
    weights = {kind: int(it["metadata"]["annotations"]["helm.sh/hook-weight"]) for kind, it in hooks.items()}
    (container,) = hooks["Job"]["spec"]["template"]["spec"]["containers"]

    assert weights == {"ServiceAccount": -10, "ClusterRole": -10, "ClusterRoleBinding": -5, "Job": 0}
    for it in hooks.values():
        told = it["metadata"]["annotations"]
        assert told["helm.sh/hook"] == "pre-delete"
        assert told["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
    assert container["args"] == ["drain", "--yes", "--config", "/etc/dovetail/dovetail.yaml"]
    assert hooks["Job"]["spec"]["template"]["spec"]["serviceAccountName"] == "dovetail-drain"
    assert bindings_of(objects, "dovetail-drain") == {("ClusterRole", "dovetail-drain")}


def test_the_hook_may_do_what_draining_needs_and_no_more(objects):
    assert only(objects, "ClusterRole", "dovetail-drain")["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "patch"]},
        {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]},
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"],
            "verbs": ["list", "delete"],
        },
    ]


def test_the_hook_can_be_left_out(helm, mode):
    objects = render(helm, with_values(mode, drainOnUninstall=False))

    assert not [it for it in objects if "drain" in it["metadata"]["name"]]


def test_what_is_applied_without_helm_drains_nothing_at_once(mode):
    manifests = CHART.parents[1] / "manifests"

    by_file = {name: (manifests / f"{name}.yaml").read_text() for name in (mode, "drain")}
    jobs = {name: [it["kind"] for it in yaml.safe_load_all(text)].count("Job") for name, text in by_file.items()}

    assert jobs == {mode: 0, "drain": 1}
    assert "helm.sh/hook" not in by_file["drain"]


def test_the_head_of_the_drain_manifest_runs_the_job_anew_each_time():
    head = (CHART.parents[1] / "manifests" / "drain.yaml").read_text().partition("---")[0]

    assert "kubectl replace --force --filename manifests/drain.yaml" in head
    assert "kubectl apply" not in head  # of a Job that has run it says `unchanged`, and it runs no more

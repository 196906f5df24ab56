"""What the chart renders, and what it refuses."""

import copy
import json
import re
import shutil
import subprocess

import pytest
import yaml

from charts.render import CHART, GATING_API, NAMESPACE, SERVICE_ADDRESS, VALUES, manifests, template
from extender.cluster.resources import parse_quantity
from extender.settings import parse
from tests.chart.rbac import HOLD_RULE, ORDER_RULES, rendered_rbac

pytestmark = pytest.mark.chart


def only(objects, kind, name=None):
    (found,) = [it for it in objects if it["kind"] == kind and name in (None, it["metadata"]["name"])]
    return found


def pod_spec(objects, name="dovetail"):
    return only(objects, "Deployment", name)["spec"]["template"]["spec"]


def containers(objects, name="dovetail"):
    spec = pod_spec(objects, name)
    return {it["name"]: it for it in spec.get("initContainers", []) + spec["containers"]}


def kube_scheduler(objects):
    return yaml.safe_load(only(objects, "ConfigMap", "dovetail-kube-scheduler")["data"]["kube-scheduler.yaml"])


def with_values(mode, **changes):
    values = copy.deepcopy(VALUES[mode])
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = values
        for part in parents:
            place = place.setdefault(part, {})
        place[last] = value
    return values


def test_helm_finds_nothing_to_complain_of(helm, mode, tmp_path):
    values = tmp_path / "values.yaml"
    values.write_text(json.dumps(VALUES[mode]))

    done = subprocess.run(
        [helm, "lint", "--strict", CHART, "--values", values], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


NAMES = {"name", "namespace", "secretName", "priorityClassName", "schedulerName", "resourceName", "resourceNamespace"}
NAMES |= {"app.kubernetes.io/instance", "dovetail.dev/installed-in"}


@pytest.mark.parametrize("word", ["123", "true", "null"])
def test_names_that_yaml_takes_for_something_else_stay_names(helm, mode, word):
    values = with_values(mode, scheduler__name=word, usageSecret=word, priorityClassName=word)
    rendered = template(helm, values, "--namespace", word, "--api-versions", GATING_API, release=word)
    told = list(yaml.safe_load_all(rendered))
    configurations = [yaml.safe_load(text) for it in told for text in it.get("data", {}).values()]

    named = list(of_keys(told + configurations, NAMES))

    assert [(key, value) for key, value in named if not isinstance(value, str)] == []
    assert {word} <= {value for _, value in named}


def of_keys(found, keys):
    """Yield each of these keys with its value, wherever it stands."""
    if isinstance(found, dict):
        yield from ((key, value) for key, value in found.items() if key in keys)
    if isinstance(found, dict | list):
        for below in found.values() if isinstance(found, dict) else found:
            yield from of_keys(below, keys)


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("dovetail", "dovetail"),
        ("mine", "mine-dovetail"),
        ("our-dovetail", "our-dovetail"),
        ("123", "dovetail-123"),
        ("a.b", "a-b-dovetail"),
        ("dovetail" + 31 * "a" + ".bc", "dovetail" + 31 * "a"),
        (53 * "1", "dovetail-" + 31 * "1"),
    ],
)
def test_every_release_gives_names_that_a_service_may_have(helm, release, name):
    told = list(yaml.safe_load_all(template(helm, VALUES["existing"], release=release)))

    assert only(told, "Service")["metadata"]["name"] == name
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= 40


def as_dependency(folder, version="0.1.0", **more):
    """Make a chart in this folder that has ours as a dependency."""
    shutil.copytree(CHART, folder / "charts" / "dovetail")
    chart = folder / "charts" / "dovetail" / "Chart.yaml"
    chart.write_text(re.sub("(?m)^version: .*", f"version: {version}", chart.read_text()))
    dependency = {"name": "dovetail", "version": version, **more}
    parent = {"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": [dependency]}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(parent))


def test_under_an_alias_and_with_a_version_of_a_build_labels_are_right_and_those_that_commands_look_for(helm, tmp_path):
    as_dependency(tmp_path, "1.2.3+abc", alias="packer")

    flags = ("--api-versions", GATING_API)
    done = subprocess.run([helm, "template", "dovetail", tmp_path, *flags], capture_output=True, text=True, check=True)
    labels = [it["metadata"]["labels"] for it in yaml.safe_load_all(done.stdout)]

    assert {it["app.kubernetes.io/name"] for it in labels} == {"dovetail"}
    assert {it["helm.sh/chart"] for it in labels} == {"packer-1.2.3_abc"}


def test_a_chart_that_has_ours_as_a_dependency_may_switch_it_on_and_off(helm, tmp_path):
    as_dependency(tmp_path, condition="dovetail.enabled")

    def rendered(enabled):
        command = [helm, "template", "platform", tmp_path, "--set", f"global.a=b,dovetail.enabled={enabled}"]
        return list(yaml.safe_load_all(subprocess.run(command, capture_output=True, text=True, check=True).stdout))

    assert pod_spec(rendered("true"), "platform-dovetail")
    assert rendered("false") == []


@pytest.mark.parametrize(
    ("mode", "changes", "complaint"),
    [
        ("scheduler", {"replica": 3}, "'replica' not allowed"),
        ("scheduler", {"enabled": False}, "/enabled"),
        ("scheduler", {"config__server__adress": "::"}, "'adress' not allowed"),
        ("scheduler", {"config__server__address": "127.0.0.1"}, "'0.0.0.0', '::'"),
        ("scheduler", {"config__placement__rule": "best"}, "/config/placement/rule"),
        ("scheduler", {"kubeScheduler__extender__weight": 0}, "/kubeScheduler/extender/weight"),
        ("scheduler", {"scheduler__name": "default-scheduler"}, "/scheduler/name"),
        ("scheduler", {"control__replicas": 0}, "/control/replicas"),
        ("scheduler", {"control__enable": False}, "'enable' not allowed"),
        ("scheduler", {"gating__policy__enabled": "yes"}, "/gating/policy/enabled"),
        ("scheduler", {"podLabels": {"app.kubernetes.io/component": "mine"}}, "/podLabels"),
        ("scheduler", {"drainOnUninstall": "no"}, "/drainOnUninstall"),
        ("both", {}, "/mode"),
    ],
)
def test_the_schema_refuses_what_cannot_work(helm, mode, changes, complaint):
    values = with_values(mode, **changes) if mode in VALUES else {"mode": mode}

    with pytest.raises(subprocess.CalledProcessError) as refused:
        template(helm, values)

    assert complaint in refused.value.stderr


@pytest.mark.parametrize(
    "address",
    [
        "",
        "dovetail.dovetail-system.svc",
        "None",
        "10.96.0.256",
        "10.96.0",
        "fd00:10:96",
        "fd00::96::fa",
        "1:2:3:4:5:6:7:8::",
    ],
)
def test_what_is_no_address_is_refused_in_words(helm, address):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        template(helm, with_values("existing", existing__clusterIP=address))

    complaint = refused.value.stderr
    assert f'existing.clusterIP is "{address}"; accepted in mode existing: a free IP address' in complaint
    assert "pattern" not in complaint


@pytest.mark.parametrize(
    "address", [SERVICE_ADDRESS, "fd00:10:96::fa", "fd00:10:96::", "fd00:1:2:3:4:5:6::", "fd00:1:2:3:4:5:6:fa"]
)
def test_a_fixed_address_of_either_family_is_accepted(helm, address):
    objects = list(yaml.safe_load_all(template(helm, with_values("existing", existing__clusterIP=address))))

    assert only(objects, "Service")["spec"]["clusterIP"] == address
    host = f"[{address}]" if ":" in address else address
    assert kube_scheduler(objects)["extenders"][0]["urlPrefix"] == f"http://{host}:10351"


def test_manifests_are_what_the_chart_renders(helm):
    for path, text in manifests(helm).items():
        assert path.read_text() == text, f"{path} is out of date: run `make manifests`"


def test_every_object_says_its_namespace_and_only_one_lives_elsewhere(objects, mode):
    elsewhere = [
        it["metadata"]["name"]
        for it in objects
        if not it["kind"].startswith("Cluster") and it["metadata"]["namespace"] != NAMESPACE
    ]

    assert elsewhere == (["dovetail-authentication-reader"] if mode == "scheduler" else [])


def test_the_extender_may_only_look_and_report_events(mode):
    role = only(rendered_rbac(mode), "ClusterRole", "dovetail-extender")
    services = {"apiGroups": [""], "resources": ["services"], "verbs": ["list", "watch"]}

    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
        # There it chooses, and leaves those that are spread alone; and it keeps the order.
        *([services, *ORDER_RULES, HOLD_RULE] if mode == "scheduler" else []),
    ]


def bindings_of(objects, account):
    """Return the roles that are bound to this ServiceAccount, and to nobody else."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
    found = [it for it in objects if it["kind"].endswith("RoleBinding") and subject in it["subjects"]]
    assert all(it["subjects"] == [subject] for it in found)
    return {(it["roleRef"]["kind"], it["roleRef"]["name"]) for it in found}


def test_the_accounts_have_no_other_rights_than_these(objects, mode):
    of_the_scheduler = {
        ("ClusterRole", "system:kube-scheduler"),
        ("ClusterRole", "system:volume-scheduler"),
        ("Role", "extension-apiserver-authentication-reader"),
        ("Role", "dovetail-lease"),
    }
    extender = {("ClusterRole", "dovetail-extender")}
    if mode == "scheduler":
        extender |= of_the_scheduler | {("Role", "dovetail-extender-lease")}
    control = {("ClusterRole", "dovetail-control"), ("Role", "dovetail-control-lease")}
    drain = {("ClusterRole", "dovetail-drain")}

    assert bindings_of(objects, "dovetail") == extender
    assert bindings_of(objects, "dovetail-control") == control
    assert bindings_of(objects, "dovetail-drain") == drain
    bound = [it for it in objects if it["kind"].endswith("RoleBinding")]
    assert len(bound) == len(extender) + len(control) + len(drain)


def test_the_second_scheduler_may_use_its_own_lease_alone(rendered):
    configured = kube_scheduler(rendered["scheduler"])["leaderElection"]
    create, use = only(rendered["scheduler"], "Role", "dovetail-lease")["rules"]

    assert (configured["resourceNamespace"], configured["resourceName"]) == (NAMESPACE, "dovetail")
    assert create["verbs"] == ["create"]
    assert use["resourceNames"] == ["dovetail"]
    assert use["verbs"] == ["get", "update"]


def test_settings_are_those_of_the_service(objects):
    settings = parse(yaml.safe_load(only(objects, "ConfigMap", "dovetail")["data"]["dovetail.yaml"]))

    assert settings.server.max_body_bytes == 10_485_760


def test_the_second_scheduler_calls_its_sidecar_and_waits_for_it(rendered):
    configured = kube_scheduler(rendered["scheduler"])
    (extender,) = configured["extenders"]

    assert configured["profiles"][0]["schedulerName"] == "dovetail"
    assert extender["urlPrefix"] == "http://127.0.0.1:10351"
    assert extender["ignorable"] is False
    assert extender["nodeCacheCapable"] is True
    assert containers(rendered["scheduler"])["extender"]["restartPolicy"] == "Always"


def test_the_clusters_own_scheduler_goes_on_without_us(rendered):
    configured = kube_scheduler(rendered["existing"])

    assert configured["extenders"][0]["ignorable"] is True
    assert configured["profiles"][0]["schedulerName"] == "default-scheduler"
    assert "resourceName" not in configured["leaderElection"]


def test_our_own_pods_are_placed_by_the_clusters_scheduler(objects):
    specs = [it["spec"]["template"]["spec"] for it in objects if it["kind"] in ("Deployment", "Job")]

    assert [it["schedulerName"] for it in specs] == ["default-scheduler"] * 3


def test_scores_that_prefer_empty_nodes_are_off(objects):
    (profile,) = kube_scheduler(objects)["profiles"]

    off = [it["name"] for it in profile["plugins"]["score"]["disabled"]]
    assert off == ["NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality"]


def test_every_knob_of_the_scheduler_reaches_its_configuration(helm):
    values = with_values(
        "scheduler",
        scheduler__name="packed",
        kubeScheduler={
            "percentageOfNodesToScore": 7,
            "parallelism": 3,
            "clientConnection": {"qps": 90_000, "burst": 2_000_000},
            "leaderElection": {"leaseDuration": "31s", "renewDeadline": "21s", "retryPeriod": "3s"},
            "podInitialBackoffSeconds": 2,
            "podMaxBackoffSeconds": 4,
            "disabledScorePlugins": [],
            "scorePlugins": [{"name": "NodeAffinity", "weight": 5}],
            "spreadReplicas": False,
            "extender": {"weight": 9, "httpTimeout": "1500ms"},
        },
    )

    told = kube_scheduler(list(yaml.safe_load_all(template(helm, values))))

    assert told == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 7,
        "parallelism": 3,
        "clientConnection": {"qps": 90_000, "burst": 2_000_000},
        "leaderElection": {
            "leaderElect": True,
            "resourceName": "packed",
            "resourceNamespace": NAMESPACE,
            "leaseDuration": "31s",
            "renewDeadline": "21s",
            "retryPeriod": "3s",
        },
        "podInitialBackoffSeconds": 2,
        "podMaxBackoffSeconds": 4,
        "profiles": [
            {
                "schedulerName": "packed",
                "plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": 5}]}},
                "pluginConfig": [
                    {
                        "name": "PodTopologySpread",
                        "args": {"defaultingType": "List", "defaultConstraints": []},
                    }
                ],
            }
        ],
        "extenders": [
            {
                "urlPrefix": "http://127.0.0.1:10351",
                "filterVerb": "filter",
                "prioritizeVerb": "prioritize",
                "preemptVerb": "preempt",
                "weight": 9,
                "httpTimeout": "1500ms",
                "nodeCacheCapable": True,
                "ignorable": False,
            }
        ],
    }


def test_every_container_is_locked_down_and_probed(objects):
    for container in (containers(objects) | containers(objects, "dovetail-control")).values():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_memory_is_enough_for_all_pods_that_kubernetes_supports_where_one_process_does_it_all(objects):
    for container in (containers(objects)["extender"], containers(objects, "dovetail-control")["control"]):
        limit = parse_quantity(container["resources"]["limits"]["memory"])
        assert limit >= 100 * 2**20 + 150_000 * 8 * 2**10  # 1.24 GiB; docs/reference/helm-values.md


def test_replicas_keep_apart_and_one_stays_up(objects):
    for name in ("dovetail", "dovetail-control"):
        spread = {it["topologyKey"] for it in pod_spec(objects, name)["topologySpreadConstraints"]}
        assert spread == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
    for name in ("dovetail", "dovetail-control"):
        assert only(objects, "PodDisruptionBudget", name)["spec"]["maxUnavailable"] == 1
        assert only(objects, "Deployment", name)["spec"]["replicas"] == 2


def test_nobody_else_may_call_the_sidecar(rendered):
    policy = only(rendered["scheduler"], "NetworkPolicy", "dovetail")["spec"]

    assert policy["policyTypes"] == ["Ingress"]
    assert policy["ingress"] == []


def test_no_policy_shuts_the_clusters_scheduler_out_unless_it_is_named(helm, rendered):
    names = [it["metadata"]["name"] for it in rendered["existing"] if it["kind"] == "NetworkPolicy"]
    assert names == ["dovetail-control"]

    peers = [{"ipBlock": {"cidr": "192.0.2.0/28"}}]
    objects = list(yaml.safe_load_all(template(helm, with_values("existing", networkPolicy={"from": peers}))))

    (rule,) = only(objects, "NetworkPolicy", "dovetail")["spec"]["ingress"]
    assert rule == {"ports": [{"port": 10351}], "from": peers}


def test_a_policy_that_would_shut_the_clusters_scheduler_out_is_refused(helm):
    values = with_values("existing", networkPolicy={"from": [{"namespaceSelector": {}}, {"podSelector": {}}]})

    with pytest.raises(subprocess.CalledProcessError) as refused:
        template(helm, values)

    assert "networkPolicy.from has no ipBlock" in refused.value.stderr
    assert "Add these addresses" in refused.value.stderr

    values["networkPolicy"]["enabled"] = False
    assert "kind: NetworkPolicy" not in template(helm, values)


def capacity(rate):
    return with_values(
        "scheduler", config__cluster__capacities=[{"nodeSelector": {"a": "b"}, "capacity": {"disk-read": rate}}]
    )


@pytest.mark.parametrize("rate", ["5X", "5 M", "5MB", "-5M", "", "M", "1e", "0x10", "5KI", -1, 2**53, True, None])
def test_a_capacity_that_the_service_would_refuse_is_refused_here(helm, rate):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        template(helm, capacity(rate))

    assert "/config/cluster/capacities/0/capacity/disk-read" in refused.value.stderr


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        *[("1250M", 1.25e9), ("100Mi", 100 * 2**20), (1_250_000_000, 1.25e9), (0.5, 1), ("1.5e9", 1.5e9), (0, 0)],
        *[
            ("2E+3", 2000),
            ("7500m", 8),
            (".5Ki", 512),
            ("+5k", 5000),
            ("1n", 1),
            ("1u", 1),
            ("1Ti", 2**40),
            ("1P", 1e15),
        ],
    ],
)
def test_a_capacity_reaches_the_service(helm, rate, expected):
    objects = list(yaml.safe_load_all(template(helm, capacity(rate))))

    settings = parse(yaml.safe_load(only(objects, "ConfigMap", "dovetail")["data"]["dovetail.yaml"]))
    (rule,) = settings.capacity_rules()
    assert rule.capacity == {"disk-read": expected}


def test_changed_settings_restart_the_pods(helm, rendered):
    def settings_hash(objects):
        made = [it for it in objects if it["kind"] == "Deployment"]
        return [it["spec"]["template"]["metadata"]["annotations"]["dovetail.dev/settings-hash"] for it in made]

    changed = list(yaml.safe_load_all(template(helm, with_values("scheduler", config__log__level="debug"))))

    before, after = settings_hash(rendered["scheduler"]), settings_hash(changed)
    assert len(before) == len(after) == 2
    assert not set(before) & set(after)


def test_the_notes_name_the_stanza_that_the_clusters_scheduler_needs(helm, rendered):
    command = [helm, "install", "dovetail", CHART, "--dry-run=client", "--values", "-"]
    done = subprocess.run(command, input=json.dumps(VALUES["existing"]), capture_output=True, text=True, check=True)

    notes = done.stdout.partition("NOTES:")[2]
    stanza = yaml.safe_load("  extenders:" + notes.partition("  extenders:")[2].partition("\n\n")[0])
    assert stanza == {"extenders": kube_scheduler(rendered["existing"])["extenders"]}


def render(helm, mode, **changes):
    return list(yaml.safe_load_all(template(helm, with_values(mode, **changes))))


def test_the_secret_for_prometheus_is_mounted_whole_and_into_control_alone(helm, rendered, mode):
    objects = render(helm, mode, usageSecret="thanos")
    control = pod_spec(objects, "dovetail-control")
    assert {"name": "usage", "secret": {"secretName": "thanos"}} in control["volumes"]
    (mount,) = [it for it in control["containers"][0]["volumeMounts"] if it["name"] == "usage"]
    assert (mount["mountPath"], mount["readOnly"], "subPath" in mount) == ("/etc/dovetail-usage", True, False)
    assert pod_spec(objects) == pod_spec(rendered[mode])


def test_files_for_prometheus_without_the_secret_that_has_them_are_refused(helm, mode):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render(helm, mode, config__usage__access__caFile="/etc/dovetail-usage/ca.crt")
    assert (
        'config.usage.access.caFile is "/etc/dovetail-usage/ca.crt", and usageSecret is empty' in refused.value.stderr
    )
    elsewhere = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
    assert render(helm, mode, config__usage__access__caFile=elsewhere)
    assert render(helm, mode, config__usage__access__caFile="/etc/dovetail-usage/ca.crt", usageSecret="thanos")


def test_controls_calls_are_limited_only_where_values_say_where_use_is_read(helm, rendered, mode):
    name = "dovetail-control"
    assert only(rendered[mode], "NetworkPolicy", name)["spec"]["policyTypes"] == ["Ingress"]
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    spec = only(render(helm, mode, networkPolicy__usage=[peer]), "NetworkPolicy", name)["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert {"to": [peer]} in spec["egress"]
    ports = {(it["port"], it["protocol"]) for rule in spec["egress"] for it in rule.get("ports", ())}
    assert ports == {(53, "UDP"), (53, "TCP"), (443, "TCP"), (6443, "TCP")}


def test_metrics_of_the_api_server_may_be_read_only_where_settings_say_so(helm, rendered, mode):
    def rules(objects):
        return [
            it
            for it in only(objects, "ClusterRole", "dovetail-control")["rules"]
            if it["apiGroups"] == ["metrics.k8s.io"]
        ]

    assert rules(rendered[mode]) == []
    assert rules(render(helm, mode, config__usage__metricsApi=True)) == [
        {"apiGroups": ["metrics.k8s.io"], "resources": ["nodes", "pods"], "verbs": ["list"]}
    ]


@pytest.fixture(scope="session")
def with_serve(helm):
    """Every object where control runs in serve's container."""
    peer = {"ipBlock": {"cidr": "192.0.2.0/28"}}
    more = {"control__withServe": True, "usageSecret": "thanos", "networkPolicy__from": [peer]}
    return render(helm, "scheduler", **more)


def test_control_in_serves_container_has_no_pods_and_no_account_of_its_own(with_serve):
    names = {(it["kind"], it["metadata"]["name"]) for it in with_serve}
    own = {"Deployment", "ServiceAccount", "PodDisruptionBudget", "NetworkPolicy"}
    assert not {(kind, name) for kind, name in names if kind in own and name == "dovetail-control"}
    assert bindings_of(with_serve, "dovetail") >= {
        ("ClusterRole", "dovetail-control"),
        ("Role", "dovetail-control-lease"),
    }
    assert bindings_of(with_serve, "dovetail-control") == set()


def test_control_in_serves_container_is_run_and_reached_there(with_serve):
    container = containers(with_serve)["extender"]
    assert container["args"] == ["serve", "--with-control", "--config", "/etc/dovetail/dovetail.yaml"]
    ports = {it["name"]: it["containerPort"] for it in container["ports"]}
    assert ports == {"extender": 10351, "control": 10352}
    assert {"name": "usage", "secret": {"secretName": "thanos"}} in pod_spec(with_serve)["volumes"]
    assert "/etc/dovetail-usage" in {it["mountPath"] for it in container["volumeMounts"]}
    (rule,) = only(with_serve, "NetworkPolicy", "dovetail")["spec"]["ingress"]
    assert {"port": 10352} in rule["ports"]


@pytest.mark.parametrize(
    ("mode", "more", "complaint"),
    [
        ("existing", {}, "control.withServe is true in mode existing"),
        (
            "scheduler",
            {"networkPolicy__usage": [{"ipBlock": {"cidr": "192.0.2.0/28"}}]},
            "networkPolicy.usage has entries",
        ),
        ("scheduler", {"config__server__port": 65535}, "config.server.port is 65535"),
        ("scheduler", {"config__server__port": 10258}, "config.server.port is 10258"),
    ],
    ids=["existing", "usage", "no-next-port", "kube-schedulers-port"],
)
def test_control_in_serves_container_is_refused_where_it_cannot_be(helm, mode, more, complaint):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render(helm, mode, control__withServe=True, **more)
    assert complaint in refused.value.stderr


def test_the_port_of_the_second_scheduler_is_refused(helm):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render(helm, "scheduler", config__server__port=10259)
    assert "config.server.port is 10259" in refused.value.stderr


def test_a_backoff_that_keeps_kube_scheduler_from_starting_is_refused(helm, mode):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        template(helm, with_values(mode, kubeScheduler__podInitialBackoffSeconds=11))

    assert "podInitialBackoffSeconds is 11 and kubeScheduler.podMaxBackoffSeconds 10" in refused.value.stderr
    assert template(helm, with_values(mode, kubeScheduler__podInitialBackoffSeconds=10))


@pytest.mark.parametrize("durations", [("10s", "10s", "2s"), ("15s", "10s", "9s"), ("1m", "90s", "2s")])
def test_an_election_that_keeps_kube_scheduler_from_starting_is_refused(helm, mode, durations):
    election = dict(zip(("leaseDuration", "renewDeadline", "retryPeriod"), durations, strict=True))
    with pytest.raises(subprocess.CalledProcessError) as refused:
        template(helm, with_values(mode, kubeScheduler__leaderElection=election))

    lease, renew, retry = durations
    said = f"kubeScheduler.leaderElection has leaseDuration {lease}, renewDeadline {renew} and retryPeriod {retry}"
    assert said in refused.value.stderr
    accepted = {"leaseDuration": "1.5h", "renewDeadline": "1h", "retryPeriod": "30m"}
    assert template(helm, with_values(mode, kubeScheduler__leaderElection=accepted))


def test_pods_have_the_time_that_their_requests_may_take(helm):
    for mode in ("scheduler", "existing"):
        objects = render(helm, mode, config__server__drainSeconds=100.5)
        pods = [it["spec"]["template"]["spec"] for it in objects if it["kind"] == "Deployment"]
        assert {pod["terminationGracePeriodSeconds"] for pod in pods} == {126}

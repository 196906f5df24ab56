"""What the user's commands read of a cluster, with whatever rights, and how they print it."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from extender.adapters.kube.api import Refused
from extender.adapters.metrics.scraping import by_address, of_pods, scraped
from extender.app.inspection import tables
from extender.app.inspection.checks import Diagnosis
from extender.app.inspection.page import NARROW
from extender.app.inspection.pod_text import pod_text
from extender.app.inspection.reading import NotAllowed, Reader, look, settings_of
from extender.errors import ClusterError, SettingsError
from extender.explain.findings import Deadline, FilterCalls, Finding, SchedulerConfiguration
from extender.explain.pod import Explanation, NodeTerms, Position
from extender.explain.queues import QueueState
from extender.explain.wait_reasons import Reason
from extender.planner import WaitLeft
from extender.settings import Settings

SETTINGS = "apiVersion: dovetail.dev/v1alpha1\nkind: DovetailConfiguration\nqueues: [{name: a}]\n"
SERVES = {
    "metadata": {"namespace": "n", "name": "p"},
    "spec": {"containers": [{"ports": [{"name": "extender", "containerPort": 1}]}]},
    "status": {"phase": "Running"},
}
HELD = {
    "metadata": {"namespace": "d", "name": "a", "uid": "u"},
    "spec": {
        "schedulingGates": [{"name": "dovetail.dev/hold"}],
        "containers": [{"resources": {"requests": {"cpu": "1"}}}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    },
}
METRICS = """# TYPE dovetail_request_duration_seconds histogram
dovetail_request_duration_seconds_count{verb="filter",result="ok"} 7.0
dovetail_request_duration_seconds_count{verb="filter",result="bad_request"} 2.0
dovetail_request_duration_seconds_count{verb="prioritize",result="ok"} 3.0
# TYPE dovetail_filter_nodes histogram
dovetail_filter_nodes_bucket{le="1.0"} 5.0
dovetail_filter_nodes_bucket{le="+Inf"} 9.0
dovetail_filter_nodes_count 9.0
dovetail_filter_nodes_sum 2005.0
# TYPE dovetail_ready gauge
dovetail_ready 1.0
# TYPE dovetail_nodes gauge
dovetail_nodes 1000.0
"""


RELEASE = "dovetail-system"
CONFIG_MAPS, OUR_PODS = f"/api/v1/namespaces/{RELEASE}/configmaps", f"/api/v1/namespaces/{RELEASE}/pods"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


class Server:
    """Answers from `objects` by path: what is not there is not found, what is None may not be read."""

    def __init__(self, **objects):
        self.objects = {path.replace("__", "/"): it for path, it in objects.items()}

    def get(self, path, params=(), *, seconds=30.0):
        found = self.objects.get(path, 404)
        if found is None or found == 404:
            raise Refused(f"GET {path}: refused", 403 if found is None else 404)
        text = found if isinstance(found, str) else json.dumps(found)
        return SimpleNamespace(data=text.encode())

    def read(self, path, params=()):
        return json.loads(self.get(path, params).data)


def server(**more):
    nothing = {"items": [], "metadata": {}}
    paths = ("/api/v1/nodes", "/api/v1/pods", CONFIG_MAPS, OUR_PODS, BINDINGS,
             "/apis/batch/v1/jobs", "/apis/apps/v1/deployments",
             "/apis/apps/v1/replicasets", "/apis/coordination.k8s.io/v1/leases",
             "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes")  # fmt: skip
    made = Server()
    made.objects = {**dict.fromkeys(paths, nothing), **more}
    return made


def items(*found):
    return {"items": list(found), "metadata": {}}


def config_map(name, namespace=RELEASE, **data):
    return {"metadata": {"namespace": namespace, "name": name}, "data": data}


def binding(namespace):
    return {"metadata": {"name": "x"}, "subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": namespace}]}


class TestSettings:
    def test_those_of_the_file_go_before_those_of_the_cluster(self, tmp_path):
        file = tmp_path / "s.yaml"
        file.write_text(SETTINGS)
        told, by = settings_of(Reader(Server()), file)
        assert ([it.name for it in told.queues], by) == (["a"], str(file))

    def test_those_of_the_cluster_are_in_its_config_map(self):
        maps = items(config_map("other", x="y"), config_map("dovetail", **{"dovetail.yaml": SETTINGS}))
        told, by = settings_of(Reader(server(**{CONFIG_MAPS: maps})), None)
        assert ([it.name for it in told.queues], by) == (["a"], "ConfigMap dovetail-system/dovetail")

    @pytest.mark.parametrize(
        ("maps", "why"),
        [
            (None, "you may not (403)"),
            (items(), "there is no ConfigMap labelled app.kubernetes.io/name=dovetail in dovetail-system"),
        ],
    )
    def test_else_they_are_built_in_and_it_says_why(self, maps, why):
        found = settings_of(Reader(server(**{CONFIG_MAPS: maps})), None)
        assert found == (Settings(), f"built-in settings ({why})")

    def test_a_mistake_in_those_of_the_cluster_names_the_config_map(self):
        maps = items(config_map("dovetail", **{"dovetail.yaml": SETTINGS + "nonsense: 1\n"}))
        with pytest.raises(SettingsError, match="ConfigMap dovetail-system/dovetail: nonsense"):
            settings_of(Reader(server(**{CONFIG_MAPS: maps})), None)


class TestRelease:
    """Where Dovetail is, and that nobody else is believed."""

    def told(self, namespace="", **there):
        reader = Reader(server(**there), namespace)
        told, by = settings_of(reader, None)
        return [it.name for it in told.queues], by, reader.unread

    def maps(self, namespace, queue):
        text = SETTINGS.replace("name: a", f"name: {queue}")
        found = items(config_map("dovetail", namespace, **{"dovetail.yaml": text}))
        return {f"/api/v1/namespaces/{namespace}/configmaps": found}

    def test_a_tenants_config_map_with_our_name_and_labels_is_not_read(self):
        there = self.maps("dovetail-system", "real") | self.maps("a-tenant", "forged")
        there["/api/v1/configmaps"] = items(*(it for found in there.values() for it in found["items"]))
        assert self.told(**there) == (["real"], "ConfigMap dovetail-system/dovetail", {})

    def test_it_is_where_the_accounts_are_that_the_cluster_role_bindings_name(self):
        there = self.maps("elsewhere", "real") | {BINDINGS: items(binding("elsewhere"), binding("elsewhere"))}
        assert self.told(**there) == (["real"], "ConfigMap elsewhere/dovetail", {})

    @pytest.mark.parametrize("file", ["scheduler", "existing", "drain"])
    def test_those_of_the_chart_say_so(self, file):
        made = yaml.safe_load_all(Path(f"manifests/{file}.yaml").read_text())
        bindings = [it for it in made if it and it["kind"] == "ClusterRoleBinding"]
        assert bindings
        assert all(it["metadata"]["labels"]["app.kubernetes.io/name"] == "dovetail" for it in bindings)
        reader = Reader(server(**{BINDINGS: items(*bindings)}))
        reader.find_release(otherwise="not there")
        assert reader.namespace == "dovetail-system"

    def test_of_two_releases_one_must_be_named(self):
        there = self.maps("a", "x") | self.maps("b", "y") | {BINDINGS: items(binding("a"), binding("b"))}
        with pytest.raises(ClusterError, match="installed in a and b; say which by --install-namespace"):
            self.told(**there)
        assert self.told("b", **there)[0] == ["y"]

    def test_who_may_not_read_bindings_must_name_it_unless_it_is_in_the_usual_place(self):
        there = {BINDINGS: None, "/api/v1/namespaces/elsewhere/configmaps": items()}
        assert self.told(**there | self.maps("dovetail-system", "real"))[2] == {}
        assert self.told("elsewhere", **there | self.maps("elsewhere", "real"))[2] == {}
        why = {"clusterrolebindings": "you may not (403), so --install-namespace must say where Dovetail is"}
        assert self.told(**there | self.maps("elsewhere", "real"))[2] == why

    def test_a_settings_file_says_where_the_lease_is(self, tmp_path):
        file = tmp_path / "s.yaml"
        file.write_text(SETTINGS + "control: {lease: {namespace: mine}}\n")
        reader = Reader(server())
        settings_of(reader, file)
        assert reader.namespace == "mine"

    def test_without_settings_the_lease_is_in_the_namespace_that_was_named(self):
        there = {"/api/v1/namespaces/mine/configmaps": items()}
        told, _ = settings_of(Reader(server(**there), "mine"), None)
        assert told.control.lease.namespace == "mine"


class TestLook:
    def test_without_nodes_or_pods_there_is_no_order_and_who_needs_it_says_why(self):
        reader = Reader(server(**{"/api/v1/pods": None}))
        seen = look(reader, Settings(), "here")
        assert seen.order is None
        with pytest.raises(NotAllowed, match=r"must be readable for this: pods: you may not \(403\)"):
            seen.require(reader)

    def test_without_jobs_there_is_one_and_what_was_not_read_is_noted(self):
        reader = Reader(server(**{"/apis/batch/v1/jobs": None}))
        assert look(reader, Settings(), "here").require(reader) is not None
        assert reader.unread == {"jobs": "you may not (403)"}

    def test_kinds_of_pod_groups_that_the_cluster_does_not_have_are_no_gap(self):
        reader = Reader(server())
        look(reader, Settings(), "here")
        assert reader.unread == {}

    def test_pods_go_where_their_volumes_are_as_far_as_those_may_be_read(self):
        nodes = [{"metadata": {"name": n, "labels": {"host": n}}, "status": {"allocatable": {"cpu": c}}}
                 for n, c in (("small", "2"), ("large", "8"))]  # fmt: skip
        terms = [{"matchExpressions": [{"key": "host", "operator": "In", "values": ["small"]}]}]
        volume = {"metadata": {"name": "pv"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}
        there = {
            "/api/v1/nodes": items(*nodes),
            "/api/v1/pods": items(HELD),
            "/api/v1/persistentvolumeclaims": items({"metadata": {"namespace": "d", "name": "data"},
                                                     "spec": {"volumeName": "pv"}}),
            "/api/v1/persistentvolumes": items(volume),
        }  # fmt: skip

        def place(**more):
            reader = Reader(server(**there | more))
            seen = look(reader, Settings(), "here")
            return seen.require(reader).places(seen.pods[0]), reader.unread

        assert place() == ((0, "small"), {})
        unread = {"persistentvolumes": "you may not (403)"}
        assert place(**{"/api/v1/persistentvolumes": None}) == ((0, "large"), unread)


class TestDiagnosis:
    def facts(self, address="", **more):
        reader = Reader(server(**more), RELEASE)
        return Diagnosis(reader, address).facts(look(reader, Settings(), "here"))

    def test_a_lease_that_is_not_there_is_none_and_one_that_may_not_be_read_is_words(self):
        path = "/apis/coordination.k8s.io/v1/namespaces/dovetail-system/leases/dovetail-control"
        assert self.facts().lease is None
        assert self.facts(**{path: None}).lease == "you may not (403)"

    def test_a_lease_says_who_holds_it_and_how_old_its_renewal_is(self):
        path = "/apis/coordination.k8s.io/v1/namespaces/dovetail-system/leases/dovetail-control"
        spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"}
        lease = self.facts(**{path: {"spec": spec}}).lease
        assert (lease.name, lease.holder, lease.seconds) == ("dovetail-system/dovetail-control", "me", 15.0)
        assert lease.age_seconds > 86_400
        assert self.facts(**{path: {"spec": {"holderIdentity": ""}}}).lease.age_seconds == float("inf")

    def test_the_extender_is_asked_through_its_pods(self):
        proxy = "/api/v1/namespaces/n/pods/p:1/proxy/metrics"
        calls = self.facts(**{OUR_PODS: items(SERVES), proxy: METRICS}).filter_calls
        # 9 calls, 5 about one node; the other 4 about 2,005 - 5 = 2,000.
        assert calls == FilterCalls("pod n/p", True, nodes=1000, calls=9, failed=2, samples=4, sampled=2000)

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ({}, "there is no running pod of it in dovetail-system labelled app.kubernetes.io/name=dovetail"),
            ({OUR_PODS: None}, "its pods cannot be asked through the API server: you may not (403)"),
            (
                {OUR_PODS: items(SERVES), "/api/v1/namespaces/n/pods/p:1/proxy/metrics": None},
                "its pods cannot be asked through the API server: you may not (403)",
            ),
        ],
    )
    def test_where_nobody_can_be_asked_it_says_why(self, more, said):
        assert self.facts(**more).filter_calls == said

    def test_an_address_that_does_not_answer_is_no_crash(self):
        assert "http://127.0.0.1:9" in self.facts("http://127.0.0.1:9").filter_calls

    def test_the_weight_is_that_of_the_config_map(self):
        text = "percentageOfNodesToScore: 100\nextenders: [{weight: 3}]\n"
        maps = items(config_map("x-kube-scheduler", **{"kube-scheduler.yaml": text}))
        assert self.facts(**{CONFIG_MAPS: maps}).configuration == SchedulerConfiguration(
            "ConfigMap dovetail-system/x-kube-scheduler", 3, 100
        )

    @pytest.mark.parametrize("text", ["extenders: []", "- 1", "{", "extenders: [{weight: x}]"])
    def test_a_configuration_that_cannot_be_understood_is_words(self, text):
        maps = items(config_map("x", **{"kube-scheduler.yaml": text}))
        assert self.facts(**{CONFIG_MAPS: maps}).configuration.startswith(
            "ConfigMap dovetail-system/x cannot be understood"
        )

    def test_deadlines_are_those_of_jobs_and_of_deployments_through_their_replica_sets(self):
        def thing(name, uid, owner="", **spec):
            owners = [{"uid": owner, "controller": True}] if owner else []
            return {"metadata": {"namespace": "n", "name": name, "uid": uid, "ownerReferences": owners}, "spec": spec}

        found = self.facts(
            **{
                "/apis/batch/v1/jobs": items(thing("j", "1", activeDeadlineSeconds=60), thing("k", "2")),
                "/apis/apps/v1/deployments": items(thing("d", "3", progressDeadlineSeconds=600)),
                "/apis/apps/v1/replicasets": items(thing("d-1", "4", "3"), thing("alone", "5")),
            }
        ).deadlines
        assert found == {
            "1": Deadline("Job n/j", "activeDeadlineSeconds", 60),
            "4": Deadline("Deployment n/d", "progressDeadlineSeconds", 600),
        }

    def test_what_may_not_be_read_is_noted(self):
        lease = "/apis/coordination.k8s.io/v1/namespaces/dovetail-system/leases/dovetail-control"
        reader = Reader(server(**{lease: None, OUR_PODS: None}), RELEASE)
        Diagnosis(reader).facts(look(reader, Settings(), "here"))
        why = "you may not (403)"
        assert reader.unread == {
            "lease dovetail-system/dovetail-control": why,
            "pods of serve": why,
            "pods of control": why,
        }


class TestScrapes:
    def test_what_is_no_text_of_metrics_is_a_cluster_error(self):
        with pytest.raises(ClusterError, match="not the text of /metrics"):
            scraped("here", "<html>{")

    def test_an_address_that_is_none_is_a_cluster_error(self):
        with pytest.raises(ClusterError):
            by_address("nonsense://")

    @pytest.mark.parametrize("changes", [{"status": {"phase": "Pending"}}, {"spec": {"containers": [{}]}}])
    def test_pods_that_do_not_run_or_serve_no_extender_are_not_asked(self, changes):
        assert of_pods(Server(), [{**SERVES, **changes}]) == []


LONG = "a-name-of-sixty-three-letters-as-long-as-kubernetes-lets-it-be-x"


class TestTables:
    def test_everything_fits_100_columns_however_long_names_are(self):
        found = Explanation(
            pod=f"{LONG}/{LONG}", state="held", waited_seconds=1e7, demand=dict.fromkeys(("cpu", "memory"), 1e15),
            priority=2**31 - 1, scheduler="s", queue=LONG, share=0.5, fair_share=0.25, job=f"{LONG}/{LONG}", work=1e9,
            owed=-3.0, reason=Reason("barred", "no node allows it: node selector, affinity, taints or cordons " * 3),
            position=Position(placed=False, before=10**6, in_queue=10**6, reached=False), node=LONG, nominated=LONG,
            nodes=[NodeTerms(LONG, False, True, 0.5, {"cpu": 1e6, "memory": 1e12}, 1.0, -100.0, -100.0)],
            change=["x y " * 60],
        )  # fmt: skip
        rows = [QueueState(LONG, "", 3, True, "fair", 1e6, 0.5, 1.0, 1.0, 10**6, 10**6, 10**6, 1e8)]
        told = [Finding("minimum shares", "warning", "x y " * 60, "z " * 90)]
        for text in (pod_text(found), tables.queues(rows), tables.findings(told)):
            assert max(map(len, text.splitlines())) <= 100, text

    @pytest.mark.parametrize(
        ("wait", "said"),
        [
            (
                WaitLeft("rack level", 5.0, 1.2, stays=True),
                "rack level in 4 s (its job has been passed over for 1 of 5 s)",
            ),
            (
                WaitLeft("anywhere", 2.5, 2.0, stays=False),
                "anywhere in 0.5 s, if it is passed over all that time (its job has been passed over for 2 of 2.5 s)",
            ),
        ],
    )
    def test_what_is_left_of_a_wait_is_said_in_seconds(self, wait, said):
        found = Explanation("d/a", "held", 3.0, {}, 0, "s", wait=wait)
        text = " ".join(pod_text(found).split())
        assert f"Its wait {said} Priority 0" in text

    def test_problems_come_first_and_all_are_counted(self):
        told = [Finding("b", "ok", "fine"), Finding("a", "problem", "bad", "do this")]
        assert tables.findings(told).splitlines() == [
            "problem  a              bad",
            "                        -> do this",
            "ok       b              fine",
            "",
            "problems: 1, warnings: 0, fine: 1",
        ]

    def test_what_could_not_be_read_comes_first(self):
        assert NARROW.incomplete({}) == []
        why = "you may not (403)"
        lines = NARROW.incomplete(dict.fromkeys(("pods", "nodes", "persistentvolumes"), why))
        assert lines == [
            "INCOMPLETE, as this could not be read: nodes: you may not (403); persistentvolumes: you may not",
            "  (403); pods: you may not (403)",
            "",
        ]

    def test_where_there_are_no_queues_it_says_so(self):
        assert tables.queues([]) == "no queue is declared, and no pod has a place in the order"

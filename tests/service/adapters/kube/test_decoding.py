"""Kubernetes' JSON to our Pod and Node."""

import msgspec
import pytest

from extender.adapters.kube.decoding import group_from, owner_from, pod_from, version_number
from extender.adapters.kube.nodes import NodeObject, node_from
from extender.adapters.kube.objects import GroupObject, JobObject, PodObject
from extender.cluster.eligibility import Requirement, Toleration
from extender.cluster.model import Group, Owner

KEY = "dovetail.dev/"
PLACE = {"pods": 1}


def read_pod(document):
    return pod_from(msgspec.json.decode(msgspec.json.encode(document), type=PodObject))


def read_node(document, rules=()):
    return node_from(msgspec.json.decode(msgspec.json.encode(document), type=NodeObject), rules)


def pod_document(*, spec=None, status=None, annotations=None):
    return {
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "u1",
            "resourceVersion": "42",
            "annotations": annotations,
            "managedFields": [{"fieldsV1": {"f:x": {}}}],
        },
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]} | (spec or {}),
        "status": status,
    }


def requests(**quantities):
    return {"requests": quantities}


def test_a_waiting_pod_is_read():
    pod = read_pod(pod_document(spec={"priority": 7}, status={"phase": "Pending"}))
    assert (pod.namespace, pod.name, pod.uid, pod.resource_version, pod.priority) == ("shop", "web", "u1", 42, 7)
    assert (pod.node, pod.nominated, pod.holds, pod.finished, pod.unschedulable) == (None, None, None, False, False)
    assert pod.demand == {"cpu": 1000} | PLACE
    assert pod.problem is None


def test_a_bound_pod_holds_its_node_until_it_has_finished():
    assert read_pod(pod_document(spec={"nodeName": "n1"}, status={"phase": "Running"})).holds == "n1"
    for phase in ("Succeeded", "Failed"):
        done = read_pod(pod_document(spec={"nodeName": "n1"}, status={"phase": phase}))
        assert (done.node, done.finished, done.holds) == ("n1", True, None)


def test_a_nomination_and_a_refusal_are_read_from_status():
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod = read_pod(pod_document(status={"nominatedNodeName": "n2", "conditions": [refused]}))
    assert (pod.nominated, pod.unschedulable) == ("n2", True)
    for condition in ({"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}):
        assert not read_pod(pod_document(status={"conditions": [condition]})).unschedulable


def test_an_error_of_kube_scheduler_is_no_refusal():
    failed = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
    pod = read_pod(pod_document(status={"conditions": [failed]}))
    assert (pod.unschedulable, pod.errored, pod.tried_in_vain) == (False, True, True)


def test_a_pod_that_is_being_deleted_is_leaving():
    leaving = read_pod({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert (leaving.leaving, leaving.leaves_at) == (True, 1_767_225_600.0)
    assert not read_pod(pod_document()).leaving


def test_empty_names_are_no_names():
    pod = read_pod(pod_document(spec={"nodeName": ""}, status={"nominatedNodeName": ""}))
    assert (pod.node, pod.nominated) == (None, None)


@pytest.mark.parametrize("document", [{}, {"metadata": {}, "spec": {}}, {"metadata": {}, "spec": {}, "status": {}}])
def test_an_object_with_nothing_in_it_demands_only_a_place(document):
    assert read_pod(document).demand == PLACE
    assert read_node(document).allocatable == {}


def test_nulls_are_read_as_absent():
    nothing = dict.fromkeys(("nodeName", "priority", "containers", "initContainers", "overhead", "resources"))
    status = dict.fromkeys(
        ("phase", "nominatedNodeName", "conditions", "containerStatuses", "initContainerStatuses", "resources")
    )
    assert read_pod(pod_document(spec=nothing, status=status)).demand == PLACE
    assert read_pod(pod_document(spec={"containers": [{"resources": None}, {"resources": {"requests": None}}]}))
    assert read_node({"metadata": {"labels": None, "annotations": None}, "status": {"allocatable": None}})


def test_init_containers_sidecars_and_overhead_add_up_by_kubernetes_rules():
    pod = read_pod(
        pod_document(
            spec={
                "initContainers": [
                    {"name": "s", "restartPolicy": "Always", "resources": requests(cpu="10m", memory="1Ki")},
                    {"name": "i", "resources": requests(cpu="3")},
                ],
                "overhead": {"cpu": "5m"},
            }
        )
    )
    assert pod.demand == {"cpu": 3015, "memory": 1024} | PLACE  # max(10 + 3000, 10 + 1000) + 5


def test_a_resize_is_counted_by_container_name():
    spec = {"containers": [{"name": n, "resources": requests(cpu="1")} for n in ("x", "y")]}
    status = {
        "containerStatuses": [
            {"name": "y", "resources": requests(cpu="2"), "allocatedResources": {"cpu": "3"}},
            {"name": "x"},
        ]
    }
    assert read_pod(pod_document(spec=spec, status=status)).demand == {"cpu": 4000} | PLACE  # 1 + max(1, 2, 3)


def test_an_infeasible_resize_counts_what_the_container_has():
    spec = {"containers": [{"name": "x", "resources": requests(cpu="8")}]}
    status = {
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
        "containerStatuses": [{"name": "x", "resources": requests(cpu="2")}],
    }
    assert read_pod(pod_document(spec=spec, status=status)).demand == {"cpu": 2000} | PLACE
    status["conditions"][0]["reason"] = "Deferred"
    assert read_pod(pod_document(spec=spec, status=status)).demand == {"cpu": 8000} | PLACE


@pytest.mark.parametrize(
    ("has", "reason", "ungranted"),
    [("0", "Deferred", True), ("0", "Infeasible", True), ("1", "Deferred", False), ("0", None, False)],
)
def test_requests_that_came_back_are_ungranted_while_the_node_has_given_none_of_them(has, reason, ungranted):
    spec = {"containers": [{"name": "x", "resources": requests(cpu="2")}]}
    status = {"containerStatuses": [{"name": "x", "resources": requests(cpu=has)}]}
    if reason:
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    annotations = {"dovetail.dev/regular-requests": '{"containers":{"x":{"cpu":"2"}}}'}
    pod = read_pod(pod_document(spec=spec, status=status, annotations=annotations))
    assert pod.ungranted is ungranted
    assert pod.opportunistic is (reason == "Infeasible")


def test_pod_level_resources_and_their_resize_are_read():
    spec = {"resources": requests(cpu="4")}
    assert read_pod(pod_document(spec=spec)).demand == {"cpu": 4000} | PLACE
    status = {"resources": requests(cpu="5"), "allocatedResources": {"cpu": "6"}}
    assert read_pod(pod_document(spec=spec, status=status)).demand == {"cpu": 6000} | PLACE


def test_rates_come_from_the_annotation_and_zeros_are_left_out():
    pod = read_pod(pod_document(annotations={KEY + "demand": '{"disk-read": "1Ki", "network-in": 0}', "other": "x"}))
    assert pod.demand == {"cpu": 1000, "disk-read": 1024} | PLACE


def test_a_broken_annotation_leaves_the_requests_and_is_named():
    pod = read_pod(pod_document(annotations={KEY + "demand": '{"disk-read": "fast"}'}))
    assert pod.demand == {"cpu": 1000} | PLACE
    assert pod.problem.startswith("annotation dovetail.dev/demand: disk-read: 'fast' is not a quantity")


def test_every_pod_takes_a_place_and_what_it_asks_for_of_scratch_space_and_huge_pages():
    asked = {"cpu": "1", "ephemeral-storage": "1Ki", "hugepages-2Mi": "4Mi"}
    overhead = {"ephemeral-storage": "1"}
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"ephemeral-storage": "1Ki"}}}
    spec = {"containers": [{"name": "c", "resources": {"requests": asked}}], "initContainers": [sidecar]}
    pod = read_pod(pod_document(spec=spec | {"overhead": overhead}))
    # 1024 + 1024 + 1 and 4 x 2^20 bytes
    assert pod.demand == {"cpu": 1000, "ephemeral-storage": 2049, "hugepages-2Mi": 4194304} | PLACE


def test_huge_pages_of_the_whole_pod_replace_the_sum_of_its_containers():
    container = {"name": "c", "resources": {"requests": {"hugepages-1Gi": "1Gi"}}}
    spec = {"containers": [container, container], "resources": {"requests": {"hugepages-1Gi": "3Gi"}}}
    assert read_pod(pod_document(spec=spec)).demand == {"hugepages-1Gi": 3 * 2**30} | PLACE


def test_device_claims_are_counted_and_their_templates_named():
    named = [{"name": "a", "resourceClaimName": "x"}, {"name": "b", "resourceClaimName": None}]
    claims = [*named, *({"name": name, "resourceClaimTemplateName": name} for name in "yw")]
    found = read_pod(pod_document(spec={"resourceClaims": claims}))
    assert found.demand == {"cpu": 1000, "device-claims": 4} | PLACE
    assert found.device_templates == ("w", "y")


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"metadata": []}, "$.metadata"),
        ({"metadata": {"name": 5}}, "$.metadata.name"),
        ({"spec": {"containers": {}}}, "$.spec.containers"),
        (
            {"spec": {"containers": [{"resources": {"requests": {"cpu": 1}}}]}},
            "$.spec.containers[0].resources.requests",
        ),
        ({"spec": {"priority": "high"}}, "$.spec.priority"),
        ({"status": {"conditions": [None]}}, "$.status.conditions[0]"),
    ],
)
def test_a_wrong_type_is_refused_with_its_place(document, where):
    with pytest.raises(msgspec.ValidationError) as caught:
        read_pod(document)
    assert where in str(caught.value)


@pytest.mark.parametrize(
    ("text", "number"), [("17", 17), ("", 0), ("abc", 0), ("-1", 0), ("\u00b2", 0), ("\u0663", 0), ("9" * 5000, 0)]
)
def test_a_version_that_is_no_number_is_zero(text, number):
    assert version_number(text) == number


def test_what_order_goes_by_is_read():
    document = pod_document(
        spec={
            "schedulingGates": [{"name": "dovetail.dev/hold"}, {"name": "kueue.x-k8s.io/admission"}],
            "schedulerName": "dovetail",
            "preemptionPolicy": "Never",
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "In", "values": ["a"]}]}]
                    }
                }
            },
        },
        status={"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
        annotations={KEY + "duration": "2.5s", KEY + "tasks": "200", KEY + "nominated": "n7"},
    )
    document["metadata"] |= {
        "creationTimestamp": "1970-01-01T00:01:40Z",
        "labels": {KEY + "queue": "q"},
        "ownerReferences": [{"uid": "o", "kind": "Job", "controller": True}],
    }
    pod = read_pod(document)
    assert pod.gates == ("dovetail.dev/hold", "kueue.x-k8s.io/admission")
    assert (pod.held, pod.waits, pod.unschedulable, pod.may_preempt) == (True, True, False, False)
    assert (pod.scheduler, pod.identity.queue, pod.identity.job) == ("dovetail", "q", "o")
    assert (pod.owner, pod.owner_kind, pod.created) == ("o", "Job", 100.0)
    assert (pod.duration, pod.tasks, pod.promised) == (2.5, 200, "n7")
    assert pod.constraints.selector == (("disk", "ssd"),)
    assert pod.constraints.terms == ((Requirement("z", "In", ("a",)),),)
    assert pod.constraints.tolerations == (Toleration("gpu", "Exists"),)


def test_no_owner_passes_for_a_job_of_another_namespace():
    document = pod_document()
    document["metadata"]["ownerReferences"] = [{"uid": "other/training", "kind": "Job", "controller": True}]
    assert (read_pod(document).owner, read_pod(document).identity.job) == ("", "u1")


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        *(
            ("duration", value, "seconds")
            for value in ("long", "-1", "0", "-0", "1e-300", "nan", "inf", "1_0", "٣", "2e9")
        ),
        ("tasks", "0", "200"),
    ],
)
def test_a_broken_duration_or_count_is_a_problem_and_nothing_else(name, value, accepted):
    pod = read_pod(pod_document(annotations={KEY + name: value}))
    assert KEY + name in pod.problem
    assert accepted in pod.problem
    assert (pod.duration, pod.tasks, pod.demand) == (None, None, {"cpu": 1000} | PLACE)


@pytest.mark.parametrize("value", ["0" * 12 + "1", "000000000001" + "9" * 400, "000000000001" + "9" * 4400])
def test_a_count_of_any_length_ends_in_a_problem_of_that_pod_alone(value):
    pod = read_pod(pod_document(annotations={KEY + "tasks": value}))
    assert pod.tasks is None
    assert pod.problem.startswith("annotation dovetail.dev/tasks: ")


@pytest.mark.parametrize(
    ("text", "seconds_since"),
    [
        ("1970-01-01T00:01:40Z", 100.0),
        ("1970-01-01T01:01:40+01:00", 100.0),
        ("1970-01-01T00:01:40.123456789Z", 100.123456),
        ("10000-01-01T00:00:00Z", 0.0),
        ("0001-01-01T00:00:00Z", 0.0),
        ("9999-12-31T23:59:59-14:00", 253402351199.0),
        ("1970-01-01", 0.0),
        ("now", 0.0),
        ("1" * 10_000, 0.0),
        (None, 0.0),
    ],
)
def test_a_time_that_cannot_be_is_as_none_and_the_pod_is_read(text, seconds_since):
    document = pod_document()
    document["metadata"]["creationTimestamp"] = text
    assert read_pod(document).created == seconds_since


def test_a_job_has_left_what_has_not_succeeded():
    job = {"metadata": {"uid": "j"}, "spec": {"completions": 10, "parallelism": 2}, "status": {"succeeded": 3}}
    assert owner_from(msgspec.convert(job, JobObject)) == Owner("j", left=7, total=10)
    queue = {"metadata": {"uid": "j"}, "spec": {"parallelism": 2}}
    assert owner_from(msgspec.convert(queue, JobObject)) == Owner("j", left=2, total=2)


@pytest.mark.parametrize(
    "spec", [{"minMember": 4}, {"schedulingPolicy": {"gang": {"minCount": 4}}}], ids=["plugins and Volcano", "workload"]
)
def test_pod_groups_of_every_kind_say_how_many_start_together(spec):
    group = msgspec.convert({"metadata": {"name": "g", "namespace": "shop"}, "spec": spec}, GroupObject)
    assert group_from(group, "path") == Group("shop/g", 4, "path")


def test_a_pod_says_where_its_input_is_and_which_nodes_it_prefers():
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    affinity = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "preference": term}]}
    }
    raw = {
        "metadata": {"annotations": {"dovetail.dev/input": '{"node-a": "1Ki"}'}},
        "spec": {"affinity": affinity},
    }
    found = read_pod(raw)
    assert found.inputs == (("node-a", 1024.0),)
    assert found.prefers == ((7, (Requirement("zone", "In", ("a",)),)),)


_TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


@pytest.mark.parametrize(
    ("spec", "asks"),
    [
        ({}, False),
        ({"affinity": {"podAffinity": {_REQUIRED: [_TERM]}}}, True),
        ({"affinity": {"podAntiAffinity": {_REQUIRED: [_TERM]}}}, True),
        ({"affinity": {"podAntiAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _TERM}]}}}, False),
        ({"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": []}}}}, False),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}]}, True),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1}]}, False),
        ({"containers": [{"ports": [{"containerPort": 80, "hostPort": 8080}]}]}, True),
        ({"containers": [{"ports": [{"containerPort": 80}]}]}, False),
        ({"containers": [{"ports": [{"containerPort": 80}]}], "hostNetwork": True}, True),
    ],
)
def test_a_pod_asks_of_others_what_it_requires_of_them(spec, asks):
    assert read_pod({"spec": spec}).asks_of_pods is asks


def test_a_broken_input_leaves_the_pod_without_one_and_says_so():
    raw = {"metadata": {"annotations": {"dovetail.dev/input": "node-a"}}}
    found = read_pod(raw)
    assert found.inputs == ()
    assert "annotation dovetail.dev/input" in found.problem


def test_who_wrote_a_broken_annotation_is_told_that_it_is_ignored_and_that_the_others_count():
    told = {"dovetail.dev/input": '{"a": -1}', "dovetail.dev/demand": '{"disk-read": "10M"}'}
    found = read_pod({"metadata": {"annotations": told}})
    assert (found.inputs, found.demand["disk-read"]) == ((), 1e7)
    assert found.warning == (
        f"{found.problem}; broken annotations are ignored: the pod's requests and its other annotations count"
    )
    assert found.problem.startswith("annotation dovetail.dev/input: ")
    assert read_pod({"metadata": {"annotations": {}}}).warning is None


# -- opportunistic pods

ZERO = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "0", "memory": "0"}}}]}
FULL = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2", "memory": "1Ki"}}}]}
REGULAR = {KEY + "regular-requests": '{"containers": {"c": {"cpu": "2", "memory": "1Ki"}}}'}
NEEDED = {"cpu": 2000, "memory": 1024} | PLACE


def kind(pod):
    return (pod.opportunistic, pod.choice, pod.problem)


def test_demotion_and_promotion_change_no_demand():
    """As it was created, with the annotation, resized to 0, resized back, and with the annotation gone."""
    specs = [(FULL, None), (FULL, REGULAR), (ZERO, REGULAR), (FULL, REGULAR), (FULL, None)]
    pods = [read_pod(pod_document(spec=spec, annotations=annotations)) for spec, annotations in specs]
    assert [pod.demand for pod in pods] == [NEEDED] * 5
    assert [pod.opportunistic for pod in pods] == [False, False, True, False, False]
    assert [pod.counted for pod in pods] == [NEEDED, NEEDED, PLACE, NEEDED, NEEDED]
    assert [pod.regular_requests is not None for pod in pods] == [False, True, True, True, False]
    assert [pod.problem for pod in pods] == [None] * 5


def test_an_opportunistic_pods_rates_count_in_the_second_book():
    pod = read_pod(pod_document(spec=ZERO, annotations={**REGULAR, KEY + "demand": '{"disk-read": "5"}'}))
    assert pod.demand == NEEDED | {"disk-read": 5}
    assert pod.counted == PLACE


@pytest.mark.parametrize("text", ["", "{", '{"containers": {"other": {"cpu": "1"}}}', "x" * 20_000])
def test_a_broken_annotation_leaves_what_kube_scheduler_counts(text):
    pod = read_pod(pod_document(spec=ZERO, annotations={KEY + "regular-requests": text}))
    assert (pod.demand, pod.opportunistic, pod.regular_requests) == (PLACE, True, None)
    assert "regular-requests" in pod.warning
    pod = read_pod(pod_document(spec=FULL, annotations={KEY + "regular-requests": text}))
    assert (pod.demand, pod.opportunistic, pod.regular_requests) == (NEEDED, False, None)


def test_a_pod_without_requests_and_without_a_word_is_regular():
    pod = read_pod(pod_document(spec=ZERO))
    assert (pod.demand, *kind(pod)) == (PLACE, False, None, None)


def test_one_that_says_never_is_regular():
    assert kind(read_pod(pod_document(annotations={KEY + "opportunistic": "never"}))) == (False, "never", None)


def test_a_pod_may_choose_that_it_may_be_opportunistic():
    pod = read_pod(pod_document(annotations={KEY + "opportunistic": "allowed"}))
    assert kind(pod)[:2] == (False, "allowed")
    assert pod.problem is None


def test_a_choice_that_is_none_counts_as_never():
    pod = read_pod(pod_document(annotations={KEY + "opportunistic": "often"}))
    assert kind(pod)[:2] == (False, "never")
    assert pod.problem == "annotation dovetail.dev/opportunistic: 'often'; accepted: only, never, allowed"


def test_one_that_says_only_declares_cpu_and_memory():
    declares = {KEY + "opportunistic": "only", KEY + "demand": '{"cpu": "2", "memory": "1Ki", "disk-read": 5}'}
    pod = read_pod(pod_document(spec=ZERO, annotations=declares))
    assert (pod.demand, *kind(pod)) == (NEEDED | {"disk-read": 5}, True, "only", None)
    assert pod.regular_requests is None


def test_one_that_says_only_and_requests_something_is_regular():
    declares = {KEY + "opportunistic": "only", KEY + "demand": '{"cpu": "9", "memory": "9", "disk-read": 5}'}
    pod = read_pod(pod_document(spec=FULL, annotations=declares))
    assert (pod.demand, *kind(pod)[:2]) == (NEEDED | {"disk-read": 5}, False, "never")
    assert "and requests of 0" in pod.problem


@pytest.mark.parametrize(
    ("port", "init", "host_network"),
    [({"containerPort": 80, "hostPort": 80}, False, False), ({"hostPort": 80}, True, False), ({}, False, True)],
    ids=["a port of the node", "of an init container", "in the node's network"],
)
def test_one_that_says_only_and_has_a_port_of_its_node_is_regular(port, init, host_network):
    declares = {KEY + "opportunistic": "only", KEY + "demand": '{"cpu": "2", "memory": "1Ki"}'}
    first, *others = ZERO["containers"]
    with_port = {**first, "ports": [port]}
    where = {"initContainers": [with_port]} if init else {"containers": [with_port, *others]}
    pod = read_pod(pod_document(spec={**ZERO, **where, "hostNetwork": host_network}, annotations=declares))
    assert kind(pod)[:2] == (False, "never")
    assert "with a port of the node" in pod.problem


def test_one_that_says_only_may_have_ports_of_its_own():
    declares = {KEY + "opportunistic": "only", KEY + "demand": '{"cpu": "2", "memory": "1Ki"}'}
    containers = [{**container, "ports": [{"containerPort": 80}]} for container in ZERO["containers"]]
    pod = read_pod(pod_document(spec={**ZERO, "containers": containers}, annotations=declares))
    assert (kind(pod)[:2], pod.problem) == ((True, "only"), None)


def test_others_declare_no_cpu():
    pod = read_pod(pod_document(annotations={KEY + "demand": '{"cpu": "2"}'}))
    assert pod.demand == {"cpu": 1000} | PLACE
    assert "'cpu' is not a dimension" in pod.problem

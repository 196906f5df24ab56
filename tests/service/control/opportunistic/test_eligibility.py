"""Who may be made opportunistic, and the first reason why not."""

import pytest

from extender.control.opportunistic.eligibility import Ineligible, Surroundings, evictions_left, why_not
from tests.service.control.opportunistic.pods import ANNOTATION, container, pod

TWO = {"cpu": "2", "memory": "4Gi"}
HERE = Surroundings()


def env(resource):
    reads = {"name": "X", "valueFrom": {"resourceFieldRef": {"resource": resource}}}
    return [{"name": "A", "value": "b"}, {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}, reads]


def file(resource):
    return {"items": [{"path": "a", "fieldRef": {"fieldPath": "b"}}, {"resourceFieldRef": {"resource": resource}}]}


def test_a_waiting_burstable_pod_of_a_job_may():
    assert why_not(pod(), HERE) is None
    assert why_not(pod(hostNetwork=True), HERE) is None
    assert why_not(pod(container(requests=TWO, ports=[{"containerPort": 80}])), HERE) is None
    assert (
        why_not(pod(container(requests=TWO, limits={"memory": "8Gi"}), schedulingGates=[{"name": "g"}]), HERE) is None
    )


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        pytest.param(pod(nodeName="n1"), Ineligible.NOT_WAITING, id="bound"),
        pytest.param(
            {**pod(), "metadata": {"uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
            Ineligible.NOT_WAITING,
            id="leaving",
        ),
        pytest.param(pod(annotations={ANNOTATION: "anything"}), Ineligible.ALREADY, id="annotated"),
        *(
            pytest.param(pod(annotations={"dovetail.dev/opportunistic": text}), Ineligible.OPTED_OUT, id=text)
            for text in ("never", "only", "broken")
        ),
        pytest.param(
            pod(container(requests=TWO, limits=TWO), qos="Guaranteed"), Ineligible.GUARANTEED, id="guaranteed"
        ),
        pytest.param(pod(container(), qos="BestEffort"), Ineligible.NOTHING_TO_GIVE, id="best effort"),
        pytest.param(
            pod(container(requests={"cpu": "0", "a.b/gpu": "1"}, limits={"memory": "1Gi"})),
            Ineligible.NOTHING_TO_GIVE,
            id="requests of 0",
        ),
        pytest.param(pod(owner="ReplicaSet"), Ineligible.NOT_RUN_TO_COMPLETION, id="service"),
        pytest.param(pod(owner=None), Ineligible.NOT_RUN_TO_COMPLETION, id="nobody's"),
        pytest.param(
            pod(
                container(requests=TWO, resizePolicy=[{"resourceName": "memory", "restartPolicy": "RestartContainer"}])
            ),
            Ineligible.RESTARTS,
            id="restarts",
        ),
        pytest.param(
            pod(init=[container("i", resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}])]),
            Ineligible.RESTARTS,
            id="init container restarts",
        ),
        pytest.param(
            pod(container(requests=TWO, ports=[{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}])),
            Ineligible.HOST_PORTS,
            id="port of the node",
        ),
        pytest.param(
            pod(init=[container("i", ports=[{"containerPort": 80, "hostPort": 80}])]),
            Ineligible.HOST_PORTS,
            id="port of the node of an init container",
        ),
        pytest.param(
            pod(container(requests=TWO, ports=[{"containerPort": 80}]), hostNetwork=True),
            Ineligible.HOST_PORTS,
            id="port in the node's network",
        ),
        pytest.param(pod(overhead={"cpu": "10m"}), Ineligible.OVERHEAD, id="overhead"),
        *(
            pytest.param(pod(container(requests=TWO, env=env(resource))), Ineligible.DOWNWARD_API, id=f"env {resource}")
            for resource in ("requests.cpu", "requests.memory", "limits.memory")
        ),
        pytest.param(
            pod(volumes=[{"name": "v", "downwardAPI": file("requests.cpu")}]), Ineligible.DOWNWARD_API, id="volume"
        ),
        pytest.param(
            pod(volumes=[{"name": "v", "projected": {"sources": [{}, {"downwardAPI": file("requests.memory")}]}}]),
            Ineligible.DOWNWARD_API,
            id="projected volume",
        ),
        pytest.param(pod(os={"name": "windows"}), Ineligible.WINDOWS, id="os"),
        pytest.param(pod(nodeSelector={"kubernetes.io/os": "windows"}), Ineligible.WINDOWS, id="node selector"),
        pytest.param(
            pod(container(requests=TWO, limits=TWO), resources={"requests": TWO}),
            Ineligible.NOT_RESIZABLE,
            id="pod-level without a limit of its own",
        ),
        pytest.param(
            pod(*(container(f"container-{number}", requests=TWO) for number in range(1000))),
            Ineligible.NOT_WRITABLE,
            id="too long",
        ),
    ],
)
def test_by_its_own_spec_a_pod_may_not(document, reason):
    assert why_not(document, HERE) is reason


@pytest.mark.parametrize(
    ("around", "reason"),
    [
        (Surroundings(opted_out=True, opted_in=True), Ineligible.OPTED_OUT),
        (Surroundings(gang=True), Ineligible.GANG),
        (Surroundings(autoscaled=True), Ineligible.AUTOSCALED),
        (Surroundings(evictions_left=0), Ineligible.NO_EVICTION_LEFT),
        (Surroundings(evictions_left=1), None),
    ],
)
def test_by_what_is_around_it_a_pod_may_or_may_not(around, reason):
    assert why_not(pod(), around) is reason


def test_whoever_opts_in_may_whatever_its_owner():
    assert why_not(pod(owner="ReplicaSet"), Surroundings(opted_in=True)) is None


@pytest.mark.parametrize(
    ("own", "tenant", "reason"),
    [
        ("allowed", {}, None),
        ("allowed", {"opted_out": True}, None),
        ("never", {"opted_in": True}, Ineligible.OPTED_OUT),
        (None, {"opted_out": True}, Ineligible.OPTED_OUT),
        (None, {"opted_in": True}, None),
        (None, {}, Ineligible.NOT_RUN_TO_COMPLETION),
    ],
)
def test_what_a_pod_chooses_comes_before_what_its_namespace_or_queue_does(own, tenant, reason):
    annotations = {"dovetail.dev/opportunistic": own} if own else {}
    assert why_not(pod(owner="ReplicaSet", annotations=annotations), Surroundings(**tenant)) is reason


def test_a_pod_that_nobody_would_make_again_has_to_choose_it_itself():
    assert why_not(pod(owner=None), Surroundings(opted_in=True)) is Ineligible.NOT_RUN_TO_COMPLETION
    assert why_not(pod(owner=None, annotations={"dovetail.dev/opportunistic": "allowed"}), HERE) is None


def test_who_may_by_choice_must_be_eligible_all_the_same():
    windows = pod(owner="ReplicaSet", annotations={"dovetail.dev/opportunistic": "allowed"}, os={"name": "windows"})
    assert why_not(windows, HERE) is Ineligible.WINDOWS


def test_a_pod_may_read_what_does_not_change():
    limited = container(requests=TWO, limits={"memory": "8Gi"}, env=env("limits.memory"))
    assert why_not(pod(limited), HERE) is None
    assert why_not(pod(container(requests=TWO, env=env("limits.cpu"))), HERE) is None


@pytest.mark.parametrize(
    "document",
    [
        pod(init=[container("load", requests={"cpu": "1"})]),
        pod(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}),
    ],
)
def test_what_only_later_versions_resize_is_eligible_there(document):
    assert why_not(document, Surroundings(version=(1, 36))) is None
    assert why_not(document, Surroundings(version=(1, 35))) is Ineligible.NOT_RESIZABLE


def test_init_containers_that_request_nothing_need_no_later_version():
    assert why_not(pod(init=[container("load")]), Surroundings(version=(1, 33))) is None


def test_every_reason_says_why_in_words_of_its_own():
    assert len({reason.value for reason in Ineligible}) == len(Ineligible)


# -- Jobs


def job(*rules, failed=0, **spec):
    return {
        "spec": {**spec, **({"podFailurePolicy": {"rules": list(rules)}} if rules else {})},
        "status": {"failed": failed},
    }


def rule(action, *conditions, codes=None, operator="In"):
    if codes is not None:
        return {"action": action, "onExitCodes": {"operator": operator, "values": codes}}
    return {"action": action, "onPodConditions": [{"type": condition, "status": "True"} for condition in conditions]}


IGNORES = rule("Ignore", "DisruptionTarget")


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ([IGNORES], None),
        ([rule("Ignore", "Other", "DisruptionTarget")], None),
        ([rule("FailJob", "Other"), IGNORES], None),
        ([rule("Ignore", codes=[143]), IGNORES], None),
        ([rule("Ignore", codes=[42]), IGNORES], None),
        ([{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "False"}]}], 5),
        ([rule("FailJob", codes=[42]), IGNORES], 5),  # an evicted pod may end with any code
        ([rule("FailJob", codes=[0, 137, 143], operator="NotIn"), IGNORES], 5),
        ([rule("Count", "DisruptionTarget"), IGNORES], 5),
        ([rule("Count", codes=[143]), IGNORES], 5),
        ([], 5),
    ],
)
def test_evictions_are_free_where_the_job_ignores_them_before_all_else(rules, left):
    """Else they count: 6 failures without a word, of which 1 is kept."""
    assert evictions_left(job(*rules), pod(), exposed=0) == left


@pytest.mark.parametrize(
    "rules",
    [
        [rule("FailJob", "DisruptionTarget")],
        [rule("FailIndex", "DisruptionTarget"), IGNORES],
        [rule("Count", codes=[1]), rule("FailJob", "DisruptionTarget")],
        [rule("FailJob", codes=[1, 143]), IGNORES],
        [rule("FailJob", codes=[137]), rule("Count", "DisruptionTarget")],
        [rule("FailJob", codes=[0], operator="NotIn"), IGNORES],
        [rule("FailIndex", codes=[0, 143], operator="NotIn")],
        [rule("OfALaterKubernetes", "DisruptionTarget")],
    ],
)
def test_none_is_exposed_where_a_single_eviction_fails_the_job_whatever_its_backoff_limit(rules):
    """Exit codes 137 and 143 are what SIGKILL and SIGTERM leave."""
    assert evictions_left(job(*rules, backoffLimit=100), pod(), exposed=0) == 0


@pytest.mark.parametrize(
    ("limit", "failed", "exposed", "left"),
    [(6, 0, 0, 5), (6, 2, 0, 3), (6, 2, 2, 1), (6, 2, 9, 0), (0, 0, 0, 0), (1, 0, 0, 0)],
)
def test_else_as_many_as_the_backoff_limit_leaves(limit, failed, exposed, left):
    assert evictions_left(job(backoffLimit=limit, failed=failed), pod(), exposed=exposed) == left


def test_a_limit_per_index_counts_the_failures_of_the_pods_index():
    of_index = pod(annotations={"batch.kubernetes.io/job-index-failure-count": "2"})
    per_index = job(backoffLimit=2**31 - 1, backoffLimitPerIndex=4)
    assert evictions_left(per_index, of_index, exposed=50) == 1  # 4 - 2 - 1 kept
    assert evictions_left(per_index, pod(), exposed=50) == 3
    assert evictions_left(job(backoffLimit=3, backoffLimitPerIndex=4), pod(), exposed=1) == 1  # 3 - 1 - 1 kept


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "\u0663", "9" * 5000])
def test_a_failure_count_that_is_no_number_leaves_none(text):
    """The annotation is the pod's: whoever may write to a pod may write anything there."""
    of_index = pod(annotations={"batch.kubernetes.io/job-index-failure-count": text})
    assert evictions_left(job(backoffLimitPerIndex=4), of_index, exposed=0) == 0

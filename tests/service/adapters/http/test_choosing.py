"""filter chooses: it names one node, and the pod is in flight to that node alone."""

import random
from collections import Counter

import msgspec
import pytest

from extender.adapters.http.choosing import FIRST_SECONDS, Chooser
from extender.adapters.kube.decoding import pod_from
from extender.adapters.kube.objects import PodObject
from extender.cluster.eligibility import Taint
from extender.cluster.events import NodeSeen, PodGone, PodSeen, ServicesListed
from extender.cluster.model import Node, Pod, Service
from extender.cluster.services import Services
from extender.verdict import Placement, Ranker, Standing
from tests.service.adapters.http.test_order import Order
from tests.service.adapters.http.test_verbs import NETWORK, Extender, landed, pod, shown


class Choosing(Extender):
    """An extender that chooses, with a clock for what it remembers."""

    def __init__(self, *names, seed=7):
        super().__init__(*names)
        self.services, self.seconds = Services(), 1000.0
        self.chooser = Chooser(
            self.ledger, Ranker(Placement()), self.services, now=lambda: self.seconds, chance=random.Random(seed)
        )
        self.verbs.chooser = self.chooser
        self.verbs.__post_init__()

    def fill(self, name):
        """Let a node be a quarter full, in all dimensions: it comes before one that is empty, as its shape stays."""
        demand = {"cpu": 1000.0, "memory": 2e9, NETWORK: 25.0}
        self.ledger.apply(PodSeen(Pod(f"on-{name}", "else", f"on-{name}", demand, node=name)))


def even(name, *, parts=1):
    """Return a pod that takes so many quarters of a node in all dimensions."""
    document = pod(name, cpu=str(parts), network=25 * parts)
    document["spec"]["containers"][0]["resources"]["requests"]["memory"] = str(int(2e9) * parts)
    return document


def with_spec(document, **fields):
    document["spec"] |= fields
    return document


def owned(document, kind, uid="owner"):
    document["metadata"]["ownerReferences"] = [{"uid": uid, "kind": kind, "name": "it", "controller": True}]
    return document


def test_the_best_node_alone_is_named_without_any_refusal():
    extender = Choosing("a", "b", "c")
    extender.fill("b")
    reply = extender.filter(pod(), "a", "b", "c")
    assert reply["NodeNames"] == ["b"]
    assert not reply["FailedNodes"]
    assert not reply["FailedAndUnresolvableNodes"]
    assert extender.sample("dovetail_choices_total", by="chosen") == 1


def test_the_pod_is_in_flight_to_that_node_alone_and_nodes_fill_by_the_rule():
    extender = Choosing("a", "b", "c")
    (first,) = extender.filter(even("one"), "a", "b", "c")["NodeNames"]
    in_flight = extender.ledger.snapshot(100.0).in_flight.sum(axis=1)
    assert in_flight.astype(bool).tolist() == [name == first for name in ("a", "b", "c")]
    nodes = [extender.filter(even(f"more-{count}"), "a", "b", "c")["NodeNames"][0] for count in range(3)]
    assert nodes == [first] * 3  # four quarters fill it
    (second,) = extender.filter(even("five"), "a", "b", "c")["NodeNames"]
    assert second != first


def test_a_node_that_others_fly_to_is_not_promised_twice():
    extender = Choosing("a", "b")
    nodes = [extender.filter(pod(str(count), cpu="3"), "a", "b")["NodeNames"] for count in range(3)]
    assert sorted(nodes[:2]) == [["a"], ["b"]]
    assert nodes[2] == []


def test_of_nodes_that_nothing_tells_apart_each_is_chosen_as_often():
    extender = Choosing("a", "b", "c", "d")
    chosen = Counter()
    for count in range(400):
        document = pod(str(count))
        chosen[extender.filter(document, "a", "b", "c", "d")["NodeNames"][0]] += 1
        extender.ledger.forget(f"uid-{count}")
    assert min(chosen[name] for name in "abcd") > 60


PREFERENCES = {
    "nodes": {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}},
    "near pods": {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}},
    "far from pods": {
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}
    },
    "spread": {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]},
    "a group": {"schedulingGroup": {"podGroupName": "gang"}},
}


@pytest.mark.parametrize("spec", PREFERENCES.values(), ids=PREFERENCES)
def test_a_pod_with_a_preference_of_its_own_is_left_to_kube_scheduler(spec):
    extender = Choosing("a", "b")
    assert extender.filter(with_spec(pod(), **spec), "a", "b")["NodeNames"] == ["a", "b"]
    assert extender.sample("dovetail_choices_total", by="preference") == 1


def test_hard_rules_are_no_preference():
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spec = {
        "affinity": {"podAntiAffinity": {required: [{"topologyKey": "kubernetes.io/hostname"}]}},
        "topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}],
    }
    extender = Choosing("a", "b")
    assert len(extender.filter(with_spec(pod(), **spec), "a", "b")["NodeNames"]) == 1


@pytest.mark.parametrize(("kind", "nodes"), [("ReplicaSet", 2), ("StatefulSet", 2), ("Job", 1)])
def test_replicas_are_left_to_be_spread_and_pods_of_jobs_are_not(kind, nodes):
    extender = Choosing("a", "b")
    assert len(extender.filter(owned(pod(), kind), "a", "b")["NodeNames"]) == nodes


@pytest.mark.parametrize(
    ("service", "nodes"),
    [
        (Service("team/web", {"app": "web"}), 2),
        (Service("team/other", {"app": "other"}), 1),
        (Service("elsewhere/web", {"app": "web"}), 1),
        (Service("team/headless"), 1),
    ],
)
def test_pods_of_a_service_are_left_to_be_spread(service, nodes):
    extender = Choosing("a", "b")
    extender.services.apply(ServicesListed([service]))
    document = pod()
    document["metadata"]["labels"] = {"app": "web", "tier": "front"}
    assert len(extender.filter(document, "a", "b")["NodeNames"]) == nodes


TOWARDS = {
    "preferred": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": {}}]}},
    "away": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": {}}]}},
    "required": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}},
    "everywhere": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaceSelector": {}}]}},
    "named": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["team"]}]}},
    "many": {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": [f"n{n}" for n in range(17)]}]
        }
    },
}


@pytest.mark.parametrize("affinity", TOWARDS.values(), ids=TOWARDS)
def test_running_pods_that_draw_others_near_are_left_to_kube_scheduler_until_they_end(affinity):
    extender = Choosing("a", "b")
    running = with_spec(pod("running", version="5"), affinity=affinity, nodeName="a")
    extender.ledger.apply(shown(running))
    assert extender.filter(pod(), "a", "b")["NodeNames"] == ["a", "b"]
    assert extender.sample("dovetail_choices_total", by="drawn") == 1
    running["metadata"]["resourceVersion"] = "6"
    extender.ledger.apply(shown(running | {"status": {"phase": "Succeeded"}}))
    assert len(extender.filter(pod(), "a", "b")["NodeNames"]) == 1


def test_running_pods_draw_those_of_their_own_namespace_where_they_name_none():
    extender = Choosing("a", "b")
    running = with_spec(pod("running"), affinity=TOWARDS["preferred"], nodeName="a")
    running["metadata"]["namespace"] = "elsewhere"
    extender.ledger.apply(shown(running))
    assert len(extender.filter(pod(), "a", "b")["NodeNames"]) == 1


def tainted(extender, name, *taints):
    capacity = {"cpu": 4000.0, "memory": 8e9, NETWORK: 100.0}
    extender.ledger.apply(NodeSeen(Node(name, capacity, taints=taints)))


def test_a_node_that_would_rather_have_others_is_chosen_last_unless_the_pod_tolerates_it():
    extender = Choosing("a", "b")
    tainted(extender, "a", Taint("old", "", "PreferNoSchedule"))
    extender.fill("a")
    assert extender.filter(pod(), "a", "b")["NodeNames"] == ["b"]
    assert extender.filter(pod(), "a")["NodeNames"] == ["a"]
    extender.ledger.forget("uid-pod")
    tolerant = with_spec(pod("tolerant"), tolerations=[{"operator": "Exists"}])
    assert extender.filter(tolerant, "a", "b")["NodeNames"] == ["a"]


def test_a_node_that_would_not_have_the_pod_is_chosen_last_for_a_growing_while():
    extender = Choosing("a", "b")
    extender.fill("a")

    def chosen(name):
        node = extender.filter(owned(pod(name), "Job"), "a", "b")["NodeNames"][0]
        extender.ledger.forget(f"uid-{name}")
        return node

    assert [chosen("one"), chosen("one")] == ["a", "b"]
    extender.seconds += FIRST_SECONDS - 1
    assert chosen("two") == "b"
    extender.seconds += 1
    assert [chosen("three"), chosen("three")] == ["a", "b"]
    extender.seconds += 2 * FIRST_SECONDS - 1
    assert chosen("four") == "b"
    extender.seconds += 1
    assert chosen("five") == "a"


def test_a_request_that_names_another_pod_by_a_uid_is_answered_and_tells_nothing_of_the_node_that_was_chosen():
    extender = Choosing("a", "b")
    extender.fill("a")
    assert extender.filter(owned(even("one"), "Job"), "a", "b")["NodeNames"] == ["a"]
    wrong = owned(even("one"), "Job")
    wrong["metadata"]["name"] = "other"
    assert extender.filter(wrong, "a", "b")["NodeNames"] == ["a", "b"]
    assert extender.filter(owned(even("two"), "Job"), "a", "b")["NodeNames"] == ["a"]


def test_a_node_of_the_plan_that_would_not_have_the_pod_is_left_for_a_while_like_one_of_our_own_choice():
    extender = Choosing("a", "b")
    extender.verbs.order = Order(Standing(node="a"))
    extender.verbs.__post_init__()
    assert extender.filter(owned(pod("one"), "Job"), "a", "b")["NodeNames"] == ["a"]
    assert extender.filter(owned(pod("one"), "Job"), "a", "b")["NodeNames"] == ["b"]
    assert [fits for _, fits in extender.verbs.order.asked] == [["a", "b"], ["b"]]
    extender.seconds += FIRST_SECONDS
    extender.ledger.forget("uid-one")
    assert extender.filter(owned(pod("two"), "Job"), "a", "b")["NodeNames"] == ["a"]


def test_where_the_node_of_the_plan_is_the_only_one_it_is_tried_again():
    extender = Choosing("a", "b")
    extender.verbs.order = Order(Standing(node="a"))
    extender.verbs.__post_init__()
    extender.ledger.apply(landed("more", "b", cpu=4000.0))
    asked = pod(cpu="1")
    assert [extender.filter(asked, "a", "b")["NodeNames"] for _ in range(2)] == [["a"], ["a"]]


def test_the_replacement_of_a_pod_that_its_kubelet_refused_goes_elsewhere():
    extender = Choosing("a", "b")
    extender.fill("a")
    refused = owned(pod("first"), "Job")
    assert extender.filter(refused, "a", "b")["NodeNames"] == ["a"]
    refused["spec"]["nodeName"], refused["status"] = "a", {"phase": "Failed", "reason": "OutOfpods"}
    failed = pod_from(msgspec.convert(refused, PodObject))
    assert failed.rejected
    extender.ledger.apply(PodSeen(failed))
    extender.chooser.failed(failed)
    assert extender.filter(owned(pod("second"), "Job"), "a", "b")["NodeNames"] == ["b"]
    assert extender.filter(owned(pod("other"), "Job", "another"), "a", "b")["NodeNames"] == ["a"]


def test_where_no_other_node_is_left_one_that_would_not_have_the_pod_is_tried_again():
    extender = Choosing("a", "b")
    extender.fill("a")
    assert extender.filter(pod(cpu="1"), "a", "b")["NodeNames"] == ["a"]
    extender.ledger.apply(landed("more", "b", cpu=4000.0))
    assert extender.filter(pod(cpu="1"), "a", "b")["NodeNames"] == ["a"]


def test_a_failed_binding_frees_the_room_when_the_refusal_shows():
    extender = Choosing("a", "b")
    asked = pod(cpu="3")
    extender.ledger.apply(shown(asked))
    extender.filter(asked, "a", "b")
    assert extender.ledger.snapshot(100.0).flights == 1
    asked["metadata"]["resourceVersion"] = "2"
    asked["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}]}
    extender.ledger.apply(shown(asked))
    assert extender.ledger.snapshot(100.0).in_flight.sum() == 0


def test_late_news_of_an_earlier_refusal_does_not_free_the_room_of_a_pod_that_is_being_bound():
    # kube-scheduler writes a refusal beside its next cycle, and may try the pod again before it shows.
    extender = Choosing("a")
    asked = pod(cpu="3")
    extender.ledger.apply(shown(asked))
    extender.ledger.apply(landed("runs", "a", cpu=2000.0))
    assert not extender.filter(asked, "a")["NodeNames"]
    extender.ledger.apply(PodGone("uid-runs"))
    assert extender.filter(asked, "a")["NodeNames"] == ["a"]
    asked["metadata"]["resourceVersion"] = "2"
    asked["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    extender.ledger.apply(shown(asked))
    assert extender.ledger.snapshot(extender.ledger.newest_flight_since()).flights == 1


def test_a_pod_that_is_heard_of_no_more_frees_its_room_after_its_time_where_kube_scheduler_nominates_nothing():
    # So it is on 1.34, whatever the binding waits for; the time is 15 s.
    extender = Choosing("a")
    asked = pod(cpu="3")
    extender.ledger.apply(shown(asked))
    extender.filter(asked, "a")
    begun = extender.ledger.newest_flight_since()
    assert extender.ledger.snapshot(begun + 14.9).flights == 1
    after = extender.ledger.snapshot(begun + 15.1)
    assert after.flights == 0
    assert after.in_flight.sum() == 0


def test_a_pod_that_kube_scheduler_nominates_while_it_binds_stays_in_flight_until_it_does_so_no_more():
    extender = Choosing("a", "b")
    asked = pod(cpu="3")
    extender.ledger.apply(shown(asked))
    (node,) = extender.filter(asked, "a", "b")["NodeNames"]
    asked["metadata"]["resourceVersion"], asked["status"] = "2", {"nominatedNodeName": node}
    extender.ledger.apply(shown(asked))
    assert extender.ledger.snapshot(1000.0).flights == 1  # long after its time
    asked["metadata"]["resourceVersion"], asked["status"] = "3", {}
    extender.ledger.apply(shown(asked))
    assert extender.ledger.snapshot(1000.0).flights == 0


def test_whole_nodes_come_back_one_alone():
    extender = Choosing("a", "b")
    items = [{"metadata": {"name": name}} for name in ("a", "b")]
    reply = extender.post("filter", {"Pod": pod(), "Nodes": {"items": items}, "NodeNames": None}).get_json()
    assert len(reply["Nodes"]["items"]) == 1

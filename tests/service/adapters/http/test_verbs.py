"""The verbs over HTTP, as kube-scheduler speaks it, without an API server."""

import json
import threading

import msgspec
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from extender.adapters.http.routes import create_app
from extender.adapters.http.verbs import Verbs
from extender.adapters.kube.decoding import pod_from
from extender.adapters.kube.objects import PodObject
from extender.adapters.metrics.serve import ServeMetrics
from extender.cluster.events import NodeSeen, NodesListed, PodGone, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import CapacityRule, Node, Pod
from extender.verdict import Placement, Ranker

NETWORK = "network-in"


class Clock:
    """A Readiness whose state and time the test sets."""

    def __init__(self):
        self.ready, self.now = True, 100.0

    def wait(self, seconds):
        return self.ready

    def problem(self):
        return None if self.ready else "caches are not synced yet"

    def flight_time(self):
        return self.now


class Heard:
    """A Warner that remembers."""

    def __init__(self):
        self.messages = []

    def warn(self, kind, namespace, name, uid, message, owner=""):
        self.messages.append((kind, f"{namespace}/{name}", message))


class Extender:
    """The app over a ledger of nodes with 100 of network-in each."""

    def __init__(self, *names, rules=(), wait_seconds=0.0, **lag):
        self.ledger = Ledger(in_flight_seconds=15)
        self.ledger.apply(NodesListed([Node(name, {"cpu": 4000.0, "memory": 8e9, NETWORK: 100.0}) for name in names]))
        self.clock, self.heard, self.metrics = Clock(), Heard(), ServeMetrics("test")
        self.verbs = Verbs(
            ledger=self.ledger,
            ranker=Ranker(Placement()),
            rules=rules,
            readiness=self.clock,
            warner=self.heard,
            metrics=self.metrics,
            wait_seconds=wait_seconds,
            **lag,
        )
        self.client = create_app(self.verbs).test_client()

    def post(self, verb, body):
        return self.client.post(f"/{verb}", data=body if isinstance(body, bytes) else json.dumps(body))

    def filter(self, pod, *names):
        return self.post("filter", {"Pod": pod, "Nodes": None, "NodeNames": list(names)}).get_json()

    def prioritize(self, pod, *names):
        reply = self.post("prioritize", {"Pod": pod, "Nodes": None, "NodeNames": list(names)}).get_json()
        return {it["Host"]: it["Score"] for it in reply}

    def preempt(self, pod, **victims):
        told = {name: meta(*uids) for name, uids in victims.items()}
        body = {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": told}
        return self.post("preempt", body).get_json()["NodeNameToMetaVictims"]

    def sample(self, name, **labels):
        families = text_string_to_metric_families(self.client.get("/metrics").get_data(as_text=True))
        found = [s for family in families for s in family.samples if s.name == name and s.labels == labels]
        return found[0].value if found else 0.0


def pod(name="pod", *, cpu="1", network=None, version="1", annotation=None):
    annotations = {"dovetail.dev/demand": annotation or json.dumps({NETWORK: network})} if network or annotation else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "resourceVersion": version,
            "annotations": annotations,
        },
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]},
    }


def landed(name, node, *, cpu=1000.0, network=0.0, version=2, **more):
    demand = {"cpu": cpu, NETWORK: network} if network else {"cpu": cpu}
    return PodSeen(Pod(f"uid-{name}", "team", name, demand, node=node, resource_version=version, **more))


def shown(document):
    """Return the news by which the watch shows a pod as it is asked about."""
    return PodSeen(pod_from(msgspec.convert(document, PodObject)))


def meta(*uids, violations=0):
    return {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}


def test_filter_returns_each_node_once_passed_or_refused_with_a_reason_without_quantity():
    extender = Extender("a", "b", "c")
    extender.ledger.apply(landed("old", "b", network=60.0))
    reply = extender.filter(pod(network=50), "c", "b", "a", "gone")
    assert reply["NodeNames"] == ["c", "a"]
    assert reply["FailedAndUnresolvableNodes"] == {"b": "insufficient network-in", "gone": "node unknown to Dovetail"}
    assert not reply["FailedNodes"]
    assert reply["Error"] == ""


def test_the_reason_for_a_pod_stays_the_same_while_the_figures_change():
    extender = Extender("a")
    replies = []
    for held in (60.0, 80.0):
        extender.ledger.apply(landed("old", "a", network=held, version=int(held)))
        replies.append(extender.filter(pod(network=50), "a"))
    assert replies[0] == replies[1]


def test_whole_nodes_come_back_as_they_came():
    extender = Extender("a", "b")
    extender.ledger.apply(landed("old", "b", network=60.0))
    items = [{"metadata": {"name": name, "labels": {"x": "ü"}}, "spec": {"strange": [1]}} for name in ("a", "b")]
    body = {"Pod": pod(network=50), "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}
    reply = extender.post("filter", body).get_json()
    assert reply["Nodes"]["items"] == [items[0]]
    assert reply["NodeNames"] is None
    assert reply["FailedAndUnresolvableNodes"] == {"b": "insufficient network-in"}
    assert {it["Host"] for it in extender.post("prioritize", body).get_json()} == {"a", "b"}


def test_a_whole_node_that_is_unknown_is_judged_by_what_the_request_says_of_it():
    extender = Extender("a", rules=(CapacityRule({"disk": "slow"}, {"disk-read": 10.0}),))
    new = {
        "metadata": {
            "name": "new",
            "labels": {"disk": "slow"},
            "annotations": {"dovetail.dev/capacity": '{"network-in": 40}'},
        },
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi"}},
    }
    body = {"Pod": pod(network=50), "Nodes": {"items": [new, {"metadata": {"name": "a"}}]}}
    reply = extender.post("filter", body).get_json()
    assert reply["FailedAndUnresolvableNodes"] == {"new": "insufficient network-in"}
    body["Pod"] = pod("small", network=30)
    assert len(extender.post("filter", body).get_json()["Nodes"]["items"]) == 2
    assert len(extender.post("prioritize", body).get_json()) == 2


def test_a_pod_that_may_have_got_a_node_counts_there_until_its_binding_is_seen():
    extender = Extender("a", "b")
    assert extender.filter(pod("first", network=80), "a", "b")["NodeNames"] == ["a", "b"]
    assert extender.filter(pod("second", network=80), "a", "b")["NodeNames"] == []
    extender.ledger.apply(landed("first", "a", network=80.0))
    assert extender.filter(pod("second", network=80), "a", "b")["NodeNames"] == ["b"]


def test_a_pod_asked_about_again_does_not_stand_in_its_own_way():
    extender = Extender("a")
    for _ in range(3):
        assert extender.filter(pod(network=80), "a")["NodeNames"] == ["a"]


def test_a_pod_in_flight_is_dropped_after_its_time():
    extender = Extender("a")
    extender.filter(pod("first", network=80), "a")
    extender.clock.now += 16
    assert extender.filter(pod("second", network=80), "a")["NodeNames"] == ["a"]


def test_filter_waits_for_a_binding_that_is_about_to_show():
    extender = Extender("a", "b", wait_seconds=5.0)
    extender.filter(pod("first", network=80), "a", "b")
    threading.Timer(0.2, lambda: extender.ledger.apply(landed("first", "b", network=80.0))).start()
    assert extender.filter(pod("second", network=80), "a", "b")["NodeNames"] == ["a"]


def test_filter_does_not_wait_where_more_than_pods_in_flight_stand_in_the_way():
    extender = Extender("a", wait_seconds=3_600.0)
    extender.ledger.apply(landed("old", "a", network=50.0))
    extender.filter(pod("first", network=40), "a")
    assert extender.filter(pod("second", network=60), "a")["NodeNames"] == []


def test_two_schedulers_asking_at_once_never_both_get_the_last_room():
    extender = Extender(*(f"n{i}" for i in range(50)))
    both = []
    for round_ in range(40):
        replies, barrier = {}, threading.Barrier(2)

        def ask(name, replies=replies, barrier=barrier):
            barrier.wait()
            replies[name] = extender.filter(pod(name, network=80), "n0")["NodeNames"]

        threads = [threading.Thread(target=ask, args=(f"{side}{round_}",)) for side in ("x", "y")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        both.append(sum(map(len, replies.values())))
        for name in replies:
            extender.ledger.apply(PodGone(f"uid-{name}"))
            extender.ledger.forget(f"uid-{name}")
    assert set(both) == {1}


def test_prioritize_gives_integers_best_ten_and_unknown_nodes_nothing():
    extender = Extender("a", "b")
    extender.ledger.apply(landed("old", "b", network=10.0))
    scores = extender.prioritize(pod(cpu="500m", network=20), "a", "b", "gone")
    assert max(scores.values()) == 10
    assert scores["gone"] == 0
    assert all(type(score) is int for score in scores.values())


def test_prioritize_changes_nothing():
    extender = Extender("a", "b")
    before = extender.ledger.snapshot(0).version
    extender.prioritize(pod(network=20), "a", "b")
    assert extender.ledger.snapshot(0).version == before


def test_no_nodes_asked_about_is_answered_with_none():
    extender = Extender("a")
    assert extender.filter(pod())["NodeNames"] == []
    assert extender.prioritize(pod()) == {}


def test_a_pod_that_fits_nowhere_known_gets_every_node_refused_before_any_node_is_known():
    extender = Extender()
    assert extender.filter(pod(), "a")["FailedAndUnresolvableNodes"] == {"a": "node unknown to Dovetail"}


def test_before_the_caches_are_synced_verbs_answer_503_and_readyz_says_why():
    extender = Extender("a")
    extender.clock.ready = False
    reply = extender.post("filter", {"Pod": pod(), "NodeNames": ["a"]})
    assert reply.status_code == 503
    assert reply.get_json()["Error"] == "dovetail: filter: caches are not synced yet"
    assert extender.client.get("/readyz").status_code == 503
    assert extender.client.get("/readyz").get_data(as_text=True) == "caches are not synced yet\n"
    assert extender.client.get("/livez").status_code == 200


def test_a_broken_annotation_is_told_and_the_pod_is_placed_by_its_requests():
    extender = Extender("a")
    broken = pod(annotation='{"network-in": "-5"}')
    assert extender.filter(broken, "a")["NodeNames"] == ["a"]
    assert extender.heard.messages == [], "nobody is told of a pod that the watch has not shown"
    extender.ledger.apply(shown(broken))
    assert extender.filter(broken, "a")["NodeNames"] == ["a"]
    ((kind, name, message),) = extender.heard.messages
    assert (kind, name) == ("Pod", "team/pod")
    assert "'-5' is negative; accepted: zero or more" in message


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt"])
def test_a_bad_request_is_400_says_what_is_accepted_and_is_counted(verb):
    extender = Extender("a")
    key, kind = ("NodeNameToVictims", "object") if verb == "preempt" else ("NodeNames", "array")
    reply = extender.post(verb, {"Pod": {}, key: 5})
    assert reply.status_code == 400
    assert reply.get_json()["Error"].endswith(f"Expected `{kind} | null`, got `int` - at `$.{key}`")
    assert extender.sample("dovetail_request_duration_seconds_count", verb=verb, result="bad_request") == 1


def test_a_node_named_twice_is_a_bad_request():
    extender = Extender("a")
    reply = extender.post("filter", {"Pod": pod(), "NodeNames": ["a", "b", "b"]})
    assert reply.status_code == 400
    assert "more than once: b" in reply.get_json()["Error"]


def test_a_mistake_of_ours_is_500_and_the_next_request_is_answered():
    extender = Extender("a")
    body = {"Pod": pod(), "NodeNames": ["a"]}
    extender.clock.now = "no time"
    extender.ledger.assume(Pod("u", "n", "p", {}), np.array([True]), extender.ledger.snapshot(0.0), 0.0)
    assert extender.post("filter", body).status_code == 500
    extender.clock.now = 0.0
    assert extender.post("filter", body).status_code == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
def test_a_verb_is_posted_and_any_other_method_is_refused_with_a_body_unless_only_the_head_is_wanted(method):
    reply = Extender("a").client.open("/filter", method=method)
    assert (reply.status_code, reply.headers["Allow"]) == (405, "POST")
    said = b"" if method == "HEAD" else b'{"Error":"dovetail: filter: accepted: POST"}'
    assert reply.get_data() == said, "what follows a head is taken for the next reply"


def test_refusals_are_counted_by_reason():
    extender = Extender("a", "b")
    for name in ("a", "b"):
        extender.ledger.apply(landed(f"old-{name}", name, network=1.0))
    extender.filter(pod(network=100), "a", "b", "gone")
    assert extender.sample("dovetail_refusals_total", reason="insufficient network-in") == 2
    assert extender.sample("dovetail_refusals_total", reason="node unknown to Dovetail") == 1


def test_the_nodes_asked_about_are_counted_and_single_ones_can_be_told_apart():
    extender = Extender("a", "b", "c")
    extender.filter(pod(), "a")  # as kube-scheduler asks about a nominated node
    extender.filter(pod(), "a", "b", "c")
    assert extender.sample("dovetail_filter_nodes_bucket", le="1.0") == 1
    assert extender.sample("dovetail_filter_nodes_count") == 2
    assert extender.sample("dovetail_filter_nodes_sum") == 4


def full(**lag):
    extender = Extender("a", **lag)
    extender.ledger.apply(landed("old", "a", network=80.0))
    assert extender.filter(pod(network=50), "a")["NodeNames"] == []
    return extender


def test_news_that_kube_scheduler_had_first_is_waited_for_a_moment():
    # The old pod's end woke the new one; kube-scheduler asks again before our watch has shown it.
    extender = full(lag_seconds=30.0)
    threading.Timer(0.02, lambda: extender.ledger.apply(PodGone("uid-old"))).start()
    assert extender.filter(pod(network=50), "a")["NodeNames"] == ["a"]


def test_where_kube_scheduler_counts_room_that_we_do_not_the_news_is_waited_for_even_at_the_first_call():
    # CPU: kube-scheduler has just let node a pass, so the old pod must have gone, though we have not heard of it.
    extender = Extender("a", lag_seconds=30.0)
    extender.ledger.apply(landed("old", "a", cpu=4000.0))
    extender.ledger.apply(landed("other", "b"))
    threading.Timer(0.01, lambda: extender.ledger.apply(landed("other", "b", version=3))).start()
    threading.Timer(0.02, lambda: extender.ledger.apply(PodGone("uid-old"))).start()
    assert extender.filter(pod(cpu="2"), "a")["NodeNames"] == ["a"], "also past news that does not help"


def test_closing_the_ledger_ends_a_wait():
    extender = Extender("a", wait_seconds=3_600.0)
    extender.filter(pod("first", network=80), "a")
    threading.Timer(0.05, extender.ledger.close).start()
    assert extender.filter(pod("second", network=80), "a")["NodeNames"] == []


# -- preempt


def crowded(**options):
    """Two nodes full of CPU: on `a` the network is held by a pod that stays, on `b` by one that may go."""
    extender = Extender("a", "b", **options)
    for event in (
        landed("stays", "a", cpu=2000.0, network=80.0),
        landed("idle", "a", cpu=2000.0),
        landed("busy", "b", cpu=2000.0, network=80.0),
        landed("other", "b", cpu=2000.0),
    ):
        extender.ledger.apply(event)
    return extender


def test_preempt_keeps_the_nodes_where_the_pod_fits_in_every_dimension_once_the_victims_are_gone():
    extender = crowded()
    assert extender.preempt(pod(network=50), a=["uid-idle"], b=["uid-busy"]) == {"b": meta("uid-busy")}
    assert extender.preempt(pod(), a=["uid-idle"], b=["uid-busy"]).keys() == {"a", "b"}
    assert extender.preempt(pod(cpu="3", network=100), b=["uid-busy"]) == {}, "of CPU 2 would be free"
    assert extender.preempt(pod(cpu="4", network=100), b=["uid-busy", "uid-other"]).keys() == {"b"}, "exactly"
    extender.ledger.apply(landed("small", "b", cpu=0.0, network=1.0))
    assert extender.preempt(pod(cpu="4", network=100), b=["uid-busy", "uid-other"]) == {}
    assert extender.sample("dovetail_refusals_total", reason="insufficient network-in") == 2


def test_preempt_answers_whole_pods_with_their_uids_and_the_violations_as_they_came():
    extender = crowded()
    victims = {
        "a": {"Pods": [{"metadata": {"uid": "uid-idle"}}], "NumPDBViolations": 0},
        "b": {"Pods": [{"metadata": {"uid": f"uid-{n}", "name": n}} for n in ("busy", "other")], "NumPDBViolations": 2},
    }
    body = {"Pod": pod(network=50), "NodeNameToVictims": victims, "NodeNameToMetaVictims": None}
    reply = extender.post("preempt", body).get_json()
    assert reply == {"NodeNameToMetaVictims": {"b": meta("uid-busy", "uid-other", violations=2)}}


def test_preempt_leaves_out_a_node_that_it_does_not_know_and_victims_that_it_does_not_know_free_nothing():
    extender = crowded()
    assert extender.preempt(pod(network=50), gone=["uid-busy"], b=["uid-nobody"]) == {}
    assert extender.preempt(pod(network=50), a=["uid-busy", "uid-idle"]) == {}, "busy runs on b"
    assert extender.sample("dovetail_refusals_total", reason="node unknown to Dovetail") == 1


def test_preempt_asked_about_no_node_keeps_none():
    assert crowded().preempt(pod()) == {}
    assert Extender().preempt(pod(), a=["uid-idle"]) == {}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body is not ExtenderPreemptionArgs"),
        (b"{}", "Pod is missing"),
        ({"Pod": {}}, "both null"),
        ({"Pod": {}, "NodeNameToMetaVictims": {"a": None}}, "$.NodeNameToMetaVictims[...]"),
        ({"Pod": {}, "NodeNameToMetaVictims": {"a": {"Pods": [{}]}}}, "missing required field `UID`"),
        ({"Pod": {}, "NodeNameToMetaVictims": {"a": {"NumPDBViolations": 2**70}}}, "NumPDBViolations"),
        ({"Pod": {}, "NodeNameToVictims": {"a": {"Pods": [{"metadata": {}}]}}}, "missing required field `uid`"),
        (b'{"Pod": ' + b'{"spec":' * 100_000, "ExtenderPreemptionArgs"),
    ],
)
def test_a_malformed_preemption_is_400_with_its_reason_and_changes_nothing(body, said):
    extender = crowded()
    before = extender.ledger.snapshot(0).version
    reply = extender.post("preempt", body)
    assert reply.status_code == 400
    assert said in reply.get_json()["Error"]
    assert extender.ledger.snapshot(0).version == before


def test_a_pod_that_preempts_counts_on_every_node_kept_until_its_nomination_shows():
    extender = Extender("a", "b")
    for name in ("a", "b"):
        extender.ledger.apply(landed(f"low-{name}", name, cpu=4000.0))
    victims = {"a": ["uid-low-a"], "b": ["uid-low-b"]}
    assert extender.preempt(pod("first", network=80), **victims).keys() == {"a", "b"}
    assert extender.preempt(pod("second", network=80), **victims) == {}
    extender.ledger.apply(landed("first", None, network=80.0, nominated="a"))
    assert extender.preempt(pod("second", network=80), **victims).keys() == {"b"}


def test_preempt_waits_for_news_that_is_about_to_show():
    extender = Extender("a", wait_seconds=5.0)
    extender.ledger.apply(landed("low", "a", cpu=4000.0))
    extender.preempt(pod("first", network=80), a=["uid-low"])
    threading.Timer(0.1, lambda: extender.ledger.apply(PodGone("uid-first"))).start()
    assert extender.preempt(pod("second", network=80), a=["uid-low"]).keys() == {"a"}


def test_preempt_waits_a_moment_for_news_where_it_is_asked_again_about_the_same_pod():
    extender = crowded(lag_seconds=30.0)
    assert extender.preempt(pod(network=50), a=["uid-idle"]) == {}
    threading.Timer(0.02, lambda: extender.ledger.apply(PodGone("uid-stays"))).start()
    refused = pod(network=50, version="2")  # kube-scheduler has written down why, which does not wake it
    assert extender.preempt(refused, a=["uid-idle"]).keys() == {"a"}


def test_preempt_tells_of_a_broken_annotation_and_goes_by_requests():
    extender = crowded()
    extender.ledger.apply(shown(pod(annotation="much")))
    assert extender.preempt(pod(annotation="much"), a=["uid-idle"]).keys() == {"a"}
    assert extender.heard.messages


# -- which refusals preemption can cure


def test_only_the_node_that_pods_are_leaving_for_the_pod_is_called_curable():
    # Called unresolvable, the node would send kube-scheduler to evict others elsewhere; any other node called curable
    # would have it look for victims where by CPU and memory none is needed, again and again.
    extender = Extender("a", "b")
    for name in ("a", "b"):
        extender.ledger.apply(landed(f"low-{name}", name, network=80.0, leaving=True))
    asked = {**pod(network=50), "status": {"nominatedNodeName": "a"}}
    asked["spec"]["priority"] = 5
    reply = extender.filter(asked, "a", "b", "gone")
    assert reply["FailedNodes"] == {"a": "insufficient network-in"}
    assert reply["FailedAndUnresolvableNodes"] == {"b": "insufficient network-in", "gone": "node unknown to Dovetail"}


@pytest.mark.parametrize(
    ("low", "network"),
    [({"leaving": False}, 50), ({"leaving": True, "priority": 5}, 50), ({"leaving": True}, 100)],
    ids=["it stays", "it is as important", "others stay"],
)
def test_a_nominated_node_without_such_pods_is_unresolvable(low, network):
    extender = Extender("a")
    extender.ledger.apply(landed("low", "a", network=80.0, **low))
    extender.ledger.apply(landed("other", "a", network=1.0))
    asked = {**pod(network=network), "status": {"nominatedNodeName": "a"}}
    asked["spec"]["priority"] = 5
    reply = extender.filter(asked, "a")
    assert reply["FailedNodes"] == {}
    assert reply["FailedAndUnresolvableNodes"] == {"a": "insufficient network-in"}


def test_a_nominated_node_with_room_is_no_refusal_though_others_are_leaving_it():
    extender = Extender("a")
    extender.ledger.apply(landed("low", "a", network=20.0, leaving=True, priority=-1))
    reply = extender.filter({**pod(network=50), "status": {"nominatedNodeName": "a"}}, "a", "gone")
    assert (reply["NodeNames"], reply["FailedNodes"]) == (["a"], {})


def test_a_nominated_node_that_is_gone_is_unresolvable_though_its_pods_are_still_leaving():
    extender = Extender("a", "b")
    extender.ledger.apply(landed("low", "a", network=80.0, leaving=True, priority=-1))
    extender.ledger.apply(NodesListed([Node("b", {"cpu": 1.0})]))
    reply = extender.filter({**pod(), "status": {"nominatedNodeName": "a"}}, "a", "b")
    assert reply["FailedNodes"] == {}
    assert reply["FailedAndUnresolvableNodes"] == {"a": "node unknown to Dovetail", "b": "insufficient cpu"}


def test_a_bad_request_about_a_pod_in_flight_leaves_it_there():
    extender = Extender("a", "b")
    extender.filter(pod(), "a")
    assert extender.post("filter", {"Pod": pod(), "Nodes": None, "NodeNames": ["a", "a"]}).status_code == 400
    assert extender.ledger.flies("uid-pod")


def test_a_pod_far_from_its_input_is_refused_for_the_network_that_it_does_not_declare():
    extender = Extender("a", "b")
    asked = pod(annotation=json.dumps({"disk-read": 101}))
    asked["metadata"]["annotations"]["dovetail.dev/input"] = json.dumps({"a": "1Gi"})
    reply = extender.filter(asked, "a", "b")  # no node says how fast its disk is; 100 of network-in are not enough
    assert reply["NodeNames"] == ["a"]
    assert reply["FailedAndUnresolvableNodes"] == {"b": f"insufficient {NETWORK}"}


# -- the watch is trusted, not the caller


def seen(extender, *documents):
    for document in documents:
        extender.ledger.apply(shown(document))


def test_what_the_watch_says_of_a_pod_counts_not_what_the_request_says():
    extender = Extender("a", "b")
    seen(extender, pod("first", network=80))
    assert extender.filter(pod("first", network=1, cpu="1m", version="2"), "a")["NodeNames"] == ["a"]
    assert extender.filter(pod("second", network=30), "a", "b")["NodeNames"] == ["b"]


def test_a_request_of_another_pod_by_a_known_uid_is_answered_and_moves_nobody():
    extender = Extender("a", "b")
    real = pod("real", network=80)
    seen(extender, real)
    assert extender.filter(real, "a")["NodeNames"] == ["a"]
    forged = pod("x", network=100, annotation=None)
    forged["metadata"]["uid"] = real["metadata"]["uid"]
    before = extender.ledger.snapshot(0).version
    assert extender.filter(forged, "a", "b")["NodeNames"] == ["b"]
    assert extender.preempt(forged, b=[]) == {"b": meta()}
    assert extender.ledger.snapshot(0).version == before
    assert extender.filter(pod("second", network=80), "a")["NodeNames"] == [], "the real one is still in flight"


def test_a_forged_uid_of_a_pod_that_only_flies_moves_nobody_either():
    extender = Extender("a")
    assert extender.filter(pod("real", network=80), "a")["NodeNames"] == ["a"]
    forged = pod("x")
    forged["metadata"]["uid"] = "uid-real"
    extender.filter(forged, "unknown-node")
    assert extender.filter(pod("second", network=80), "a")["NodeNames"] == []


def test_made_up_pods_keep_no_real_one_from_its_node():
    extender = Extender("a", "b")
    real = pod("real", network=10)
    seen(extender, real)
    for number in range(5):
        assert extender.filter(pod(f"ghost{number}", cpu="4", network=100), "a", "b")["NodeNames"] in (["a", "b"], [])
        assert extender.filter(real, "a", "b")["NodeNames"] == ["a", "b"]


def test_preempt_is_not_kept_by_made_up_pods_either():
    extender = Extender("a")
    extender.ledger.apply(landed("low", "a", cpu=4000.0))
    seen(extender, pod("real", network=50))
    assert extender.preempt(pod("ghost", network=100), a=["uid-low"]).keys() == {"a"}
    assert extender.preempt(pod("real", network=50), a=["uid-low"]).keys() == {"a"}


def test_a_rate_that_no_node_offers_is_broken_in_a_request_as_well():
    extender = Extender("a", "b")
    assert extender.filter(pod("first", network=101), "a")["NodeNames"] == ["a"]
    assert extender.filter(pod("second", network=100), "a")["NodeNames"] == ["a"], "the first counts by its requests"


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"uid": "u" * 65}, "Pod.metadata.uid has 65 characters; accepted: at most 64"),
        ({"name": "n" * 254}, "Pod.metadata.name has 254 characters; accepted: at most 253"),
        ({"namespace": "n" * 254}, "Pod.metadata.namespace has 254 characters; accepted: at most 253"),
        (None, "Pod.spec.priority is beyond 32 bits"),
    ],
)
def test_what_no_api_server_lets_through_is_a_bad_request(verb, change, said):
    asked = pod()
    asked["metadata"] |= change or {}
    asked["spec"] |= {} if change else {"priority": 2**31}
    reply = Extender("a").post(verb, {"Pod": asked, "NodeNames": ["a"], "NodeNameToMetaVictims": {"a": {}}})
    assert reply.status_code == 400
    assert said in reply.get_json()["Error"]


# -- every call ends


class Restless(Clock):
    """Has something change whenever it is asked for the time; more often than a verb may ask is a fault."""

    def __init__(self, change, most):
        super().__init__()
        self.change, self.asked, self.most = change, 0, most

    def flight_time(self):
        self.asked += 1
        assert self.asked <= self.most, "the call does not end"
        self.change(self.asked)
        return self.now


def restless(extender, change, most):
    extender.verbs.readiness = extender.clock = Restless(change, most)
    extender.verbs.__post_init__()
    return extender


@pytest.mark.parametrize("network", [50, 100])
def test_filter_ends_however_often_nodes_change(network):
    extender = Extender("a", "b")
    extender.ledger.apply(landed("old", "a", network=1.0))

    def change(count):
        extender.ledger.apply(
            NodeSeen(Node("a", {"cpu": 4000.0, "memory": 8e9, NETWORK: 100.0}, labels={"n": str(count)}))
        )

    restless(extender, change, most=5)
    passed = ["a", "b"] if network == 50 else ["b"]
    assert extender.filter(pod(network=network), "a", "b")["NodeNames"] == passed
    assert extender.ledger.in_flight(0.0) == {"uid-pod"}


@pytest.mark.parametrize("verb", ["filter", "preempt"])
def test_a_verb_gives_up_where_another_pod_took_off_during_every_try(verb):
    extender = Extender("a")
    restless(extender, lambda count: extender.ledger.promise(Pod(f"u{count}", "n", "p", {}), "a", 0.0), most=41)
    reply = extender.post(verb, {"Pod": pod(), "NodeNames": ["a"], "NodeNameToMetaVictims": {"a": {}}})
    assert reply.status_code == 503
    assert "other pods were placed during each of 20 tries" in reply.get_json()["Error"]

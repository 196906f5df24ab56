"""What is learned from the metrics of `dovetail control`, and what is said where they do not tell."""

import io
import json
import re

import pytest

from extender.adapters.kube.api import Refused
from extender.adapters.metrics.control import ControlGauges, ControlMetrics
from extender.adapters.metrics.scraping import by_address, of_pods, scraped
from extender.app.inspection.measured import Measured, NotMeasured, measured, of_cluster
from extender.app.inspection.reading import Reader
from extender.errors import ClusterError

FACEBOOK = """# TYPE dovetail_leader gauge
dovetail_leader 1.0
# TYPE dovetail_nodes gauge
dovetail_nodes 620.0
# TYPE dovetail_room_freed counter
dovetail_room_freed_total 1620.0
# TYPE dovetail_loaded_seconds counter
dovetail_loaded_seconds_total 60.0
# TYPE dovetail_locality_job_tasks gauge
dovetail_locality_job_tasks 10.4
# TYPE dovetail_locality_replicas gauge
dovetail_locality_replicas 3.0
# TYPE dovetail_placements counter
dovetail_placements_total{level="anywhere"} 10.0
dovetail_placements_total{level="rack"} 30.0
dovetail_placements_total{level="node"} 160.0
"""
FOLLOWER = """# TYPE dovetail_leader gauge
dovetail_leader 0.0
# TYPE dovetail_nodes gauge
dovetail_nodes 600.0
# TYPE dovetail_room_freed counter
dovetail_room_freed_total 80.0
# TYPE dovetail_loaded_seconds counter
dovetail_loaded_seconds_total 40.0
# TYPE dovetail_placements counter
dovetail_placements_total{level="node"} 40.0
"""
ELSEWHERE = """# TYPE dovetail_nodes gauge
dovetail_nodes 620.0
"""


def of(*texts):
    return measured([scraped(f"control-{n}", text) for n, text in enumerate(texts)])


def without(name):
    return "\n".join(line for line in FACEBOOK.splitlines() if name not in line) + "\n"


def with_value(name, value):
    return re.sub(rf"^{name} .*$", f"{name} {value}", FACEBOOK, flags=re.MULTILINE)


def test_the_rate_is_what_freed_up_by_the_time_under_load():
    # 1,620 in 60 s: the paper's 27 per second.
    found = of(FACEBOOK)
    assert found.rate() == 27
    assert (found.source, found.known_nodes(), found.tasks, found.replicas) == ("control-0", 620, 10, 3)


def test_placements_are_by_level_the_nearest_first():
    assert list(of(FACEBOOK).placements.items()) == [("node", 160), ("rack", 30), ("anywhere", 10)]


def test_replicas_count_together_and_the_leader_knows_the_cluster():
    # (1,620 + 80) / (60 + 40) s
    found = of(FOLLOWER, FACEBOOK)
    assert found.rate() == 17
    assert (found.source, found.nodes, found.tasks) == ("control-1 and 1 more", 620, 10)
    assert found.placements == {"node": 200, "rack": 30, "anywhere": 10}


def test_a_typical_job_that_is_not_told_is_not_known():
    found = of(FOLLOWER)
    assert (found.tasks, found.replicas) == (None, None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (with_value("dovetail_loaded_seconds_total", 0), "control-0: nothing has waited for room since it began"),
        (with_value("dovetail_room_freed_total", 0), "control-0: no room freed up in 60 s under load"),
        (without("dovetail_room_freed"), "there is no dovetail_room_freed_total and dovetail_loaded_seconds_total"),
        (ELSEWHERE, "not the metrics of a `dovetail control`"),
    ],
)
def test_where_there_is_no_rate_it_is_said_why_and_how_to_go_on(text, why):
    with pytest.raises(NotMeasured, match=re.escape(why)) as raised:
        of(text).rate()
    assert str(raised.value).endswith("give --rate")


@pytest.mark.parametrize("text", [with_value("dovetail_nodes", 0), without("dovetail_nodes")])
def test_without_nodes_there_is_no_answer(text):
    with pytest.raises(NotMeasured, match="does not say how many nodes there are; give --nodes"):
        of(text).known_nodes()


def test_what_control_exports_is_what_is_read():
    metrics = ControlMetrics("1.2.3")
    metrics.locality.count("node", 0.0)
    seen = ControlGauges(True, True, 0, {}, nodes=5, freed=6, loaded_seconds=2.0, job_tasks=3.5, replicas=3.0)
    metrics.observe(lambda: seen)
    assert measured([scraped("control", metrics.text().decode())]) == Measured(
        source="control", freed=6, loaded_seconds=2.0, nodes=5, tasks=4, replicas=3, placements={"node": 1}
    )


# -- through the API server


class Server:
    """Answers for the pods of control by their names, and for one of serve: text, or the status of a refusal."""

    path = "metrics"

    def __init__(self, serve=ELSEWHERE, **metrics):
        self.metrics = {"serve": serve, **metrics}

    def read(self, path, params=()):
        labelled = [("labelSelector", "app.kubernetes.io/name=dovetail")]
        assert (path, params) == ("/api/v1/namespaces/ours/pods", labelled), "pods of others are not believed"
        return {"items": [pod(name, "extender" if name == "serve" else "control") for name in self.metrics]}

    def get(self, path, params=(), *, seconds=30.0):
        (name,) = re.fullmatch(rf"/api/v1/namespaces/ours/pods/(.*):8888/proxy/{self.path}", path).groups()
        if isinstance(self.metrics[name], int):
            raise Refused(f"GET {path}: {json.dumps({'kind': 'Status'})}", self.metrics[name])
        return io.BytesIO(self.metrics[name].encode())


def pod(name, port, kind="containers"):
    containers = {"containers": [], kind: [{"name": "c", "ports": [{"name": port, "containerPort": 8888}]}]}
    return {
        "metadata": {"namespace": "ours", "name": name, "uid": name},
        "spec": containers,
        "status": {"phase": "Running"},
    }


def test_the_pods_of_control_are_asked():
    assert of_cluster(Reader(Server(one=FACEBOOK, two=FOLLOWER), "ours")) == Measured(
        source="pod ours/one and 1 more",
        freed=1700,
        loaded_seconds=100.0,
        nodes=620,
        tasks=10,
        replicas=3,
        placements={"node": 200, "rack": 30, "anywhere": 10},
    )


def test_where_filter_keeps_the_order_serve_counts_placements():
    serve = 'dovetail_nodes 7.0\ndovetail_placements_total{level="rack"} 5.0\n'
    found = of_cluster(Reader(Server(serve=serve, one=FACEBOOK), "ours"))
    assert found.placements == {"node": 160, "rack": 35, "anywhere": 10}
    assert found.nodes == 620, "only those of control that are not cordoned count"


def test_where_no_control_runs_it_is_said():
    with pytest.raises(ClusterError, match="no pod of dovetail control runs in ours"):
        of_cluster(Reader(Server(), "ours"))


def test_who_may_not_ask_pods_is_told_so():
    with pytest.raises(ClusterError, match=r"through the API server: you may not \(403\); try --metrics"):
        of_cluster(Reader(Server(one=403), "ours"))


def test_a_sidecar_is_asked_like_any_container():
    # In mode scheduler the extender is one: an init container that goes on.
    found = of_pods(Server(serve=FACEBOOK), [pod("serve", "extender", "initContainers")])
    assert [it.source for it in found] == ["pod ours/serve"]


@pytest.mark.parametrize("path", ["", "/", "/metrics"])
def test_an_address_may_name_the_path_of_the_metrics(path):
    with pytest.raises(ClusterError, match=r"^http://127\.0\.0\.1:1: "):
        by_address(f"http://127.0.0.1:1{path}")

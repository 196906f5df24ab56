"""`order: filter`, and `auto` without its policy: pods are refused until their turn, and woken when it comes."""

import time
from collections import Counter
from contextlib import contextmanager, nullcontext

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.rest import request
from tests.integration.dovetail import control_on, dovetail_on, offers, over_allocated
from tests.integration.history import HOLD, History
from tests.integration.test_placement import refusal

TURN = "dovetail.dev/turn"
FILL = {"part": "fill"}
where_nothing_gates_pods = pytest.mark.parametrize("order", ["filter", "auto"])


@pytest.fixture
def client(control_plane):
    return control_plane.client()


@contextmanager
def ordered(control_plane, *, control=True, order="filter", percentage=None, **settings):
    """Run Dovetail, scheduler and extender, with these settings; with or without `dovetail control`.

    kube-scheduler asks about a `percentage` of the nodes; None: as the chart says.
    """
    told = {"order": order, **settings}
    with (
        dovetail_on(control_plane, settings=told, percentage=percentage) as dovetail,
        control_on(control_plane, **told) if control else nullcontext(),
    ):
        yield dovetail


def pod(name, *, queue="q", job=None, priority=None, held=False, on=None, **more):
    labels = {"dovetail.dev/queue": queue, **({"dovetail.dev/job": job} if job else {}), **more.pop("labels", {})}
    spec = {**({"priorityClassName": priority} if priority else {}), **more.pop("spec", {})}
    spec |= {"schedulingGates": [{"name": HOLD}]} if held else {}
    spec |= {"nodeSelector": {"kubernetes.io/hostname": on}} if on else {}
    return builders.pod(name, **{"cpu": 1, "scheduler_name": "dovetail", **more}, labels=labels, spec=spec)


class Times(History):
    """When each pod was first seen, and first seen with a node."""

    def __init__(self, client):
        super().__init__(client, offers(client))
        self.created, self.bound, self.turns = {}, {}, Counter()
        self._said = {}

    def _see(self, pod):
        now, name = time.monotonic(), pod["metadata"]["name"]
        self.created.setdefault(name, now)
        if pod["spec"].get("nodeName"):
            self.bound.setdefault(name, now)
        said = pod["metadata"].get("annotations", {}).get(TURN)
        if said != self._said.get(name):
            self._said[name] = said
            self.turns[name] += 1
        super()._see(pod)

    def waits(self):
        return [at - self.created[name] for name, at in self.bound.items()]

    def order(self):
        """Return the names in the order in which they were bound."""
        return sorted(self.bound, key=self.bound.get)


def calls(dovetail):
    return dovetail.metric("dovetail_request_duration_seconds_count", verb="filter")


def all_ended(client, names, seconds):
    def done():
        phases = workload.phases(client)
        return all(phases.get(name) == "Succeeded" for name in names)

    workload.wait_until(done, seconds, f"{len(names)} pods to end")


@where_nothing_gates_pods
def test_queues_get_their_shares_within_one_pod(control_plane, client, order, tell):
    # 12 cores; weights 1, 2 and 3 of 6: 2, 4 and 6 of them. Each queue asks for 12.
    queues = [{"name": name, "weight": weight} for name, weight in (("one", 1), ("two", 2), ("three", 3))]
    with ordered(control_plane, order=order, queues=queues, policy={"fairness": 0.9}) as dovetail:
        control_plane.kill("second-scheduler")
        workload.create_nodes(client, [builders.node(f"node-{n}", cpu=4, memory="16Gi") for n in range(3)])
        asking = [pod(f"{name}-{n:02d}", queue=name, job=name) for name in ("one", "two", "three") for n in range(12)]
        workload.create_pods(client, asking)
        control_plane.start("second-scheduler")
        workload.wait_until(lambda: len(workload.bound_pods(client)) == 12, 30, "the cluster to be full")
        time.sleep(1)

        got = Counter(name.partition("-")[0] for name in workload.bound_pods(client))
        tell(f"of 12 cores, weights 1 : 2 : 3: {got['one']} : {got['two']} : {got['three']}; {calls(dovetail):g} calls")
        assert abs(got["one"] - 2) <= 1
        assert abs(got["two"] - 4) <= 1
        assert abs(got["three"] - 6) <= 1


@where_nothing_gates_pods
def test_a_short_jobs_pods_go_before_a_long_jobs_that_were_created_first(control_plane, client, order, tell):
    with ordered(control_plane, order=order) as dovetail:
        control_plane.kill("second-scheduler")
        workload.create_nodes(client, [builders.node("node", cpu=4, memory="16Gi")])
        workload.create_pods(client, [pod(f"long-{n}", job="long", duration=30) for n in range(8)])
        time.sleep(1.1)  # creation times have whole seconds
        workload.create_pods(client, [pod(f"short-{n}", job="short", duration=1) for n in range(4)])
        with Times(client) as times:
            control_plane.start("second-scheduler")
            workload.wait_until(lambda: len(times.bound) == 8, 40, "eight pods to be bound")
        tell(f"bound in this order: {', '.join(times.order())}; {calls(dovetail):g} calls")
        assert {name.partition("-")[0] for name in times.order()[:4]} == {"short"}


@pytest.mark.usefixtures("priorities")
@pytest.mark.parametrize("control", [True, False], ids=["with control", "alone"])
def test_a_turn_that_comes_without_an_event_is_told_to_that_pod_alone(control_plane, client, tell, control):
    # Two cores are free. `first` outranks all, but kube-scheduler has a reason against it that we do not know. The
    # others are refused for its sake; when it is deleted, kube-scheduler sees no reason to try them again.
    nobody = {"labelSelector": {"matchLabels": {"is": "nowhere"}}, "topologyKey": "kubernetes.io/hostname"}
    beside_nobody = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [nobody]}}
    with ordered(control_plane, control=control) as dovetail:
        workload.create_nodes(client, [builders.node("node", cpu=4, memory="16Gi")])
        workload.create_pods(client, [pod("keeper", cpu=2)])
        workload.wait_until(lambda: workload.bound_pods(client), 10, "the keeper")
        first = pod("first", cpu=2, priority="high", spec={"affinity": beside_nobody})
        workload.create_pods(client, [first])
        refusal(client, "first")
        workload.create_pods(client, [pod("next", cpu=2, duration=5), pod("later", cpu=2, duration=500)])
        assert "others go first" in refusal(client, "next")
        assert "others go first" in refusal(client, "later")
        # While nothing changes nobody is asked about: a reason that changes wakes its pod dozens of times a second.
        time.sleep(1)
        asked = calls(dovetail)
        time.sleep(1)
        assert calls(dovetail) == asked
        with Times(client) as times:
            request(client, "DELETE", "/api/v1/namespaces/default/pods/first", gracePeriodSeconds=0)
            deleted = time.monotonic()
            if control:
                workload.wait_until(lambda: "next" in times.bound, 10, "the pod to be woken", every=0.01)
                tell(f"bound {times.bound['next'] - deleted:.3f} s after its turn came")
                time.sleep(1)
                assert times.turns["next"]  # on a busy machine it is told again before it is tried
                assert not times.turns["later"]
                assert times.bound["next"] - deleted < 2
            else:
                time.sleep(12)  # kube-scheduler's longest backoff is 10 s
                assert not times.bound
                assert calls(dovetail) == asked
                patch = {"metadata": {"annotations": {"any": "event"}}}
                path = "/api/v1/nodes/node"
                request(client, "PATCH", path, patch, content="application/merge-patch+json")
                workload.wait_until(lambda: "next" in times.bound, 10, "the pod to be tried again", every=0.01)
                tell(f"without control it waited for the next event, {times.bound['next'] - deleted:.1f} s here")


def test_a_pod_that_kube_scheduler_never_offers_does_not_keep_the_others_waiting(control_plane, client, tell):
    nobody = {"labelSelector": {"matchLabels": {"is": "nowhere"}}, "topologyKey": "kubernetes.io/hostname"}
    beside_nobody = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [nobody]}}
    with ordered(control_plane):
        workload.create_nodes(client, [builders.node("node", cpu=2, memory="16Gi")])
        workload.create_pods(client, [pod("never", cpu=2, duration=1, spec={"affinity": beside_nobody})])
        refusal(client, "never")
        begun = time.monotonic()
        workload.create_pods(client, [pod("other", cpu=2, duration=60)])
        workload.wait_until(lambda: "other" in workload.bound_pods(client), 40, "the other pod to be bound")
        tell(f"bound {time.monotonic() - begun:.1f} s after its creation")


@pytest.mark.usefixtures("priorities")
@where_nothing_gates_pods
def test_order_does_not_keep_a_pod_from_preempting(control_plane, client, order):
    with ordered(control_plane, order=order):
        workload.create_nodes(client, [builders.node("node", cpu=4, memory="16Gi")])
        workload.create_pods(client, [pod(f"low-{n}", cpu=2) for n in range(2)])
        workload.wait_until(lambda: len(workload.bound_pods(client)) == 2, 10, "the node to be full")
        workload.create_pods(client, [pod(f"waits-{n}", cpu=2) for n in range(5)])
        workload.create_pods(client, [pod("high", cpu=2, priority="high")])
        workload.wait_until(lambda: "high" in workload.bound_pods(client), 20, "the preemptor to be bound")
        assert sum(name.startswith("low") for name in workload.bound_pods(client)) == 1


@where_nothing_gates_pods
def test_held_pods_and_others_share_one_plan(control_plane, client, order, tell):
    # 6 cores for two queues of weight 1: one is held by our gate, one is not.
    queues = [{"name": "held"}, {"name": "free"}]
    with ordered(control_plane, order=order, queues=queues, policy={"fairness": 0.9}):
        control_plane.kill("second-scheduler")
        workload.create_nodes(client, [builders.node("node", cpu=6, memory="32Gi")])
        asking = [pod(f"held-{n}", queue="held", job="held", held=True) for n in range(6)]
        asking += [pod(f"free-{n}", queue="free", job="free") for n in range(6)]
        workload.create_pods(client, asking)
        control_plane.start("second-scheduler")
        workload.wait_until(lambda: len(workload.bound_pods(client)) == 6, 30, "the cluster to be full")
        got = Counter(name.partition("-")[0] for name in workload.bound_pods(client))
        tell(f"of 6 cores: {got['held']} held, {got['free']} not")
        assert abs(got["held"] - 3) <= 1
        assert not over_allocated(client)


@pytest.mark.usefixtures("priorities")
def test_no_room_is_kept_for_held_pods_like_one_that_kube_scheduler_refuses(control_plane, client):
    # 4 cores, of which 3 are taken; one pod has the port. 12 more jobs want it, held, and go first: one is released,
    # and refused. Then 3 cores are free: at most one is for its next turn, none for those that are still held.
    def with_port(name, **more):
        made = pod(name, job=name, priority="high", **more)
        made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        return made

    def bound(prefix):
        return sum(name.startswith(prefix) for name in workload.bound_pods(client))

    with ordered(control_plane, order="auto"):
        workload.create_nodes(client, [builders.node("node", cpu=4, memory="16Gi")])
        workload.create_pods(client, [with_port("port-0"), *(pod(f"fill-{n}", labels=FILL) for n in range(2))])
        workload.wait_until(lambda: len(workload.bound_pods(client)) == 3, 30, "3 cores to be taken")
        workload.create_pods(client, [with_port(f"port-{n}", held=True) for n in range(1, 13)])
        workload.wait_until(lambda: "Unschedulable" in str(workload.pods(client)), 30, "one to be refused")
        workload.create_pods(client, [pod(f"other-{n}", job="other") for n in range(3)])
        workload.delete_pods(client, "default", "part=fill")
        workload.wait_until(lambda: bound("other") >= 2, 15, "two of the others to be bound")
        assert bound("port") == 1


@pytest.mark.parametrize(
    ("name", "order", "control", "held"),
    [
        ("no order", "gates", False, False),
        ("gates and control", "gates", True, True),
        ("filter and control", "filter", True, False),
        ("filter alone", "filter", False, False),
    ],
    ids=["none", "gates", "filter", "alone"],
)
def test_nobody_is_stuck_over_allocates_or_is_asked_about_twice_and_what_order_costs(
    control_plane, client, tell, name, order, control, held
):
    # 60 cores: of 150 pods that run 1 to 3 s most wait.
    count = 150
    with ordered(control_plane, order=order, control=control) as dovetail:
        workload.create_nodes(client, [builders.node(f"node-{n:02d}", cpu=12, memory="64Gi") for n in range(5)])
        asking = [
            pod(f"pod-{n:03d}", queue=f"q{n % 3}", job=f"job-{n % 12}", duration=1 + n % 3, held=held)
            for n in range(count)
        ]
        begun = time.monotonic()
        with Times(client) as times:
            workload.create_pods(client, asking)
            workload.wait_until(lambda: len(times.bound) == count, 120, "all to be bound", every=0.05)
            all_ended(client, times.bound, 60)
        waits, asked = times.waits(), calls(dovetail)
        time.sleep(1)
        tell(
            f"| {count} | {name} | {asked / count:.1f} | {sum(waits) / count:.2f} s | {max(waits):.2f} s "
            f"| {max(times.bound.values()) - begun:.1f} s | {sum(times.turns.values())} "
            f"| {dovetail.metric('dovetail_plan_seconds_count'):g} |"
        )
        assert calls(dovetail) == asked < 2 * count
        assert not times.over
        assert not times.rebound

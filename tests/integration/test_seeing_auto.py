"""`dovetail explain`, `queues` and `doctor` with `order: auto`: who is held, who was refused, and what frees them."""

from contextlib import contextmanager

import pytest
import yaml

from lab.controlplane import workload
from tests.integration.dovetail import scheduler_configuration
from tests.integration.gating import HOLD, auto_policies, gates, hold_kind, is_gated, namespace, require_policies
from tests.integration.test_auto import AUTO, auto_on, held, nodes, pods
from tests.integration.test_seeing import asked, configured, dovetail

QUEUES = ("research", "reports")


@pytest.fixture(scope="module")
def space(control_plane):
    """Make a managed namespace, with the kind and both policies."""
    require_policies(control_plane)
    with namespace(control_plane, "auto") as name, hold_kind(control_plane), auto_policies(control_plane, name):
        yield name


@contextmanager
def seen_auto(control_plane):
    """Run Dovetail with `order: auto` on four nodes of 4 cores, its settings where commands look; give what asks it."""
    with auto_on(control_plane) as (running, control):
        told = {**AUTO, "queues": [{"name": name} for name in QUEUES]}
        maps = {
            "dovetail": {"dovetail.yaml": yaml.safe_dump({
                "apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration", **told,
            })},
            "dovetail-kube-scheduler": {"kube-scheduler.yaml": yaml.safe_dump(scheduler_configuration(running.url))},
        }  # fmt: skip
        workload.create_nodes(running.client, nodes())
        with configured(running.client, maps):
            yield running.client, (f"--extender={running.url}", f"--control={control}")


def of_queue(queue):
    return {"labels": {"dovetail.dev/queue": queue}}


def some_refused(client, prefix):
    """Return the name of a pod that kube-scheduler has refused; None where there is none."""
    for pod in workload.pods(client):
        conditions = pod["status"].get("conditions", [])
        if pod["metadata"]["name"].startswith(prefix) and any(it.get("reason") == "Unschedulable" for it in conditions):
            return pod["metadata"]["name"]
    return None


def is_held(pod, prefix):
    return pod["metadata"]["name"].startswith(prefix) and HOLD in gates(pod)


def by_check(control_plane, where, status=0):
    """Return what doctor found, by check: level and text."""
    found = asked(control_plane, "doctor", *where, status=status)["findings"]
    return {it["check"]: (it["level"], it["text"]) for it in found}


def test_held_and_refused_pods_are_told_alike_and_what_frees_them_also_while_control_is_down(control_plane, space):
    with seen_auto(control_plane) as (client, where):
        # 1. Room for all: nobody waits.
        workload.create_pods(client, pods(space, "early", 4, seconds=120, **of_queue("research")))
        workload.wait_until(lambda: len(workload.bound_pods(client)) == 4, 30, "the first pods to start")
        print(dovetail(control_plane, "queues"))
        told = asked(control_plane, "queues")
        assert (told["new_pods"]["held"], told["new_pods"]["why"]) == (False, "nobody waits for room")

        # 2. A backlog: of one burst those without room are refused, and who comes later is held.
        workload.create_pods(client, pods(space, "burst", 20, seconds=120, **of_queue("reports")))
        workload.wait_until(lambda: held(client) and is_gated(client, space), 15, "new pods to be held")
        gang = {"labels": {**of_queue("research")["labels"], "scheduling.x-k8s.io/pod-group": "pair"}}
        workload.create_pods(client, pods(space, "late", 3, seconds=120, **of_queue("research")))
        workload.create_pods(client, pods(space, "gang", 2, seconds=120, **gang))
        refused = workload.wait_until(lambda: some_refused(client, "burst"), 15, "a refusal")
        print(dovetail(control_plane, "explain", "pod", f"{space}/{refused}"))
        found = asked(control_plane, "explain", "pod", f"{space}/{refused}")
        assert (found["state"], found["reason"]["kind"]) == ("without a gate", "no-room")
        assert "Insufficient cpu" in found["refusal"]
        assert (found["refused_seconds"] or 0.0) <= found["waited_seconds"] + 1
        assert found["new_pods"].endswith("somebody waits for room; this one has no gate, and never gets one")
        assert found["position"]["reached"]
        late = next(it["metadata"]["name"] for it in workload.pods(client) if is_held(it, "late"))
        print(dovetail(control_plane, "explain", "pod", f"{space}/{late}"))
        found = asked(control_plane, "explain", "pod", f"{space}/{late}")
        assert (found["state"], found["reason"]["kind"]) == ("held", "no-room")
        assert found["new_pods"].startswith("are held, for ")
        assert found["new_pods"].endswith("somebody waits for room")
        found = asked(control_plane, "explain", "pod", f"{space}/gang-000")
        assert found["new_pods"].endswith("pods of gangs are held at any time")
        print(dovetail(control_plane, "queues"))
        rows = {it["name"]: it for it in asked(control_plane, "queues")["queues"]}
        assert sum(rows[name]["running"] for name in QUEUES) == 16
        all_of = {name: sum(rows[name][where] for where in ("running", "held", "ungated")) for name in QUEUES}
        assert all_of == {"research": 9, "reports": 20}
        assert rows["research"]["ungated"] == 0 < rows["reports"]["ungated"]
        assert rows["reports"]["oldest_seconds"] > 0
        print(dovetail(control_plane, "doctor", *where))
        assert "problem" not in {level for level, _ in by_check(control_plane, where).values()}

        # 3. Without control held pods wait for it; the refused ones go on by themselves.
        control_plane.kill("dovetail-control")
        workload.wait_until(lambda: held(client) is False, 30, "serve to end it")
        print(dovetail(control_plane, "explain", "pod", f"{space}/{late}"))
        found = asked(control_plane, "explain", "pod", f"{space}/{late}")
        assert found["change"][0].startswith("`dovetail control` must run, as it alone releases held pods: Lease ")
        assert found["new_pods"].endswith("not been renewed for 8 s; this one keeps its gate until its turn")
        found = asked(control_plane, "explain", "pod", f"{space}/{refused}")
        assert found["change"][0].startswith("nobody wakes it in its turn (Lease ")
        print(dovetail(control_plane, "doctor", *where, status=1))
        levels = {check: level for check, (level, _) in by_check(control_plane, where, status=1).items()}
        # It does not answer where it was said to be, either.
        assert {check for check, level in levels.items() if level == "problem"} == {"leader", "shares"}
        control_plane.start("dovetail-control")

"""`dovetail locality` by what `control` measured while jobs with inputs kept a cluster full."""

import json
import random
import subprocess
import sys

import pytest

from extender.adapters.http import wait_report as waits_told
from extender.adapters.metrics.scraping import said_at
from lab.controlplane import builders, workload
from tests.integration.dovetail import control_on, dovetail_on, equal_nodes
from tests.integration.test_seeing import metric

HOLD = "dovetail.dev/hold"
NODES, JOBS, TASKS, COPIES, SECONDS, WAIT = 20, 20, 6, 2, 3.0, 2


def reader(job, task, random_of):
    """Return a held pod that fills half a node for its duration, whose input is on two nodes."""
    where = random_of.sample([f"node-{number:03d}" for number in range(NODES)], COPIES)
    return builders.pod(
        f"job-{job:02}-{task}",
        cpu=8,
        memory="2Gi",
        duration=SECONDS,
        scheduler_name="dovetail",
        labels={"dovetail.dev/queue": "q", "dovetail.dev/job": f"job-{job:02}"},
        annotations={"dovetail.dev/input": json.dumps(dict.fromkeys(where, "128Mi"))},
        spec={"schedulingGates": [{"name": HOLD}]},
    )


def locality(*words):
    command = [sys.executable, "-m", "extender", "locality", *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def ended(client):
    return sum(it["status"].get("phase") == "Succeeded" for it in workload.pods(client))


def test_the_wait_for_a_target_follows_from_what_control_measured(control_plane):
    client = control_plane.client()
    random_of = random.Random(1)
    with dovetail_on(control_plane):
        workload.create_nodes(client, equal_nodes(builders, NODES))
        workload.create_pods(client, [reader(job, task, random_of) for task in range(TASKS) for job in range(JOBS)])
        with control_on(control_plane, locality={"waitSeconds": [WAIT]}) as url:
            workload.wait_until(lambda: ended(client) >= JOBS * TASKS / 2, 60, "half of the tasks to end")
            print(locality(f"--wait={WAIT}", f"--metrics={url}"))
            found = json.loads(locality("--target=0.9", f"--metrics={url}", "--json"))
    assert set(found["told_by"].values()) == {"measured"}
    assert (found["tasks"], found["nodes"], found["replicas"]) == (TASKS, NODES, COPIES)
    # 2 x 20 places, each free again after 3 s and what it takes to fill it: at most 13.3 per second on average, though
    # those that began together end together.
    assert 3 < found["rate"] < 2 * 2 * NODES / SECONDS
    assert found["measured"]["freed"] >= NODES
    assert found["wait_seconds"] == pytest.approx(found["skips"] / found["rate"])
    placed = found["measured"]["placements"]
    assert sum(placed.values()) >= JOBS * TASKS / 2
    assert placed["node"] > 0


def test_control_comes_to_wait_as_long_as_a_target_takes(control_plane):
    client = control_plane.client()
    random_of = random.Random(1)
    told = {"waitSeconds": [600], "target": 0.9, "maxWaitSeconds": 1}
    with dovetail_on(control_plane):
        workload.create_nodes(client, equal_nodes(builders, NODES))
        workload.create_pods(client, [reader(job, task, random_of) for task in range(TASKS) for job in range(JOBS)])
        with control_on(control_plane, locality=told) as url:
            workload.wait_until(lambda: waits(url) == 600, 20, "control to lead")
            workload.wait_until(lambda: waits(url) != 600, 30, "the rate to be known")
            in_force = waits(url)
            assert by_address(url).in_force == (pytest.approx(in_force),), "it is what explain goes by"
            workload.wait_until(lambda: ended(client) == JOBS * TASKS, 60, "all tasks to end")
            far = metric(url, "dovetail_placements_total", level="anywhere")
    # D = -20 / 2 x ln(0.1 x 6 / (1 + 0.1 x 6)) = 9.8 chances, at no more than 26.7 per second (above).
    assert 9.8 / (2 * 2 * NODES / SECONDS) < in_force <= 1
    assert far > 0, "nobody waits 600 s for a node whose tasks take 3 s: some went elsewhere, by the computed wait"


def by_address(url):
    """Return what control tells of waits to `dovetail explain`."""
    return waits_told.read(*said_at(url, waits_told.PATH))


def waits(url):
    """Return the wait at the node that is in force; 0 before control leads."""
    return metric(url, "dovetail_locality_wait_in_force_seconds", level="node")

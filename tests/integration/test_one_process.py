"""`dovetail serve --with-control`: both in one process, with the rights of both."""

from collections import Counter
from urllib.request import urlopen

import pytest

from lab.controlplane import builders, workload
from tests.chart.rbac import granted, rendered_rbac
from tests.integration.dovetail import equal_nodes, over_allocated, scheduler_configuration

HOLD = {"schedulingGates": [{"name": "dovetail.dev/hold"}]}


@pytest.fixture
def started(control_plane, request):
    """Run both in one process, and a kube-scheduler that asks it; return the address."""
    workload.create_nodes(control_plane.client(), equal_nodes(builders, 4))
    lease = {"seconds": 2, "renewSeconds": 1, "retrySeconds": 0.2}
    settings = {"order": request.param, "placement": {"chosenBy": "filter"}, "control": {"lease": lease}}
    with granted(control_plane, "scheduler", rights()) as account:
        url = control_plane.add_extender(settings, user=account, with_control=True)
        control_plane.add_scheduler(scheduler_configuration(url), user=account, name="second-scheduler")
        try:
            yield url
        finally:
            for component in ("second-scheduler", "dovetail"):
                control_plane.remove_scheduler(component)


def rights():
    """Return roles and bindings as the chart renders them then: those of control go to serve's account."""
    objects = rendered_rbac("scheduler")
    for subject in (subject for it in objects for subject in it.get("subjects", ())):
        subject["name"] = subject["name"].removesuffix("-control")
    return objects


def held(count, prefix):
    """Return held pods of a core each."""
    made = (f"{prefix}-{number:02d}" for number in range(count))
    return [builders.pod(name, cpu=1, duration=1, scheduler_name="dovetail", spec=HOLD) for name in made]


def ended(client, count):
    return Counter(workload.phases(client).values()) == {"Succeeded": count}


def text_of(address, path):
    with urlopen(f"{address}/{path}", timeout=10) as answer:
        return answer.read().decode()


@pytest.mark.parametrize("started", ["gates", "auto"], indirect=True)
def test_it_answers_and_releases_and_says_so_at_two_ports(control_plane, started):
    client = control_plane.client()
    # 96 pods of one core on 64 cores: some wait for others.
    workload.create_pods(client, held(96, "pod"))
    workload.wait_until(lambda: ended(client, 96), 90, "all pods to end", every=0.5)

    assert not over_allocated(client)
    host, port = started.rsplit(":", 1)
    control = f"{host}:{int(port) + 1}"
    assert text_of(control, "readyz") == text_of(started, "readyz") == "ok\n"
    assert "dovetail_releases_total{" in text_of(control, "metrics")
    assert "dovetail_releases_total{" not in text_of(started, "metrics")


@pytest.mark.parametrize("started", ["gates"], indirect=True)
@pytest.mark.usefixtures("started")
def test_killed_and_started_again_it_goes_on(control_plane):
    client = control_plane.client()
    workload.create_pods(client, held(80, "pod"))
    for _ in range(3):
        control_plane.kill("dovetail")
        control_plane.start("dovetail")
    workload.wait_until(lambda: ended(client, 80), 120, "all pods to end", every=0.5)
    assert not over_allocated(client)

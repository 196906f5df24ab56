"""A checkpoint becomes a problem; what is wrong in it is named, counted and left out."""

import gzip
import math

import numpy as np
import pytest

from extender.cluster.eligibility import Constraints, Requirement, Taint
from extender.cluster.peers import HostPort, Peers, PodTerm
from extender.cluster.recording.lines import Begin, Checkpoint, End, NodeLine, PodLine, encoded
from extender.errors import TraceError
from lab.packing.checkpoints import read_recording
from lab.packing.moment import NEVER_MODELLED, moment_of
from lab.packing.placing import pack

GIB = 2.0**30
AMOUNTS = "accepted: whole, 0 or more, below 2**53"


def node_line(name, **others):
    return NodeLine(1.0, name, {"cpu": 4000.0, "memory": 8 * GIB, "pods": 110.0}, **others)


def pod_line(name, node="n0", cpu=1000.0, **others):
    demand = {"cpu": cpu, "memory": GIB, "pods": 1.0}
    return PodLine(name, "shop", name, "shop/web", "shop", demand, 1.0, node=node, **others)


def moment(nodes, pods):
    return moment_of(Checkpoint(1.0, nodes, pods), "here")


def test_pods_of_a_daemon_set_leave_with_their_node_and_are_no_part_of_the_workload():
    found = moment([node_line("n0"), node_line("n1")], [pod_line("a"), pod_line("d", owner_kind="DaemonSet")])
    problem = found.problem
    assert problem.classes.tasks == 1
    assert problem.capacity[:, 0].tolist() == [3000.0, 4000.0]
    assert problem.allocated[:, 0].tolist() == [1000.0, 0.0]
    # 1 of 3 cores is allocated, of 4 it were 2: so whoever reads percents is told of what they are.
    assert found.left_out == ["1 pod of DaemonSets, or static; percents are of what such pods leave of their nodes"]


def test_selectors_taints_and_cordons_count():
    nodes = [
        node_line("n0", labels={"disk": "ssd"}),
        node_line("n1", taints=(Taint("gpu", "", "NoSchedule"),)),
        node_line("n2", unschedulable=True),
        node_line("n3"),
    ]
    to_ssd = Constraints(selector=(("disk", "ssd"),))
    classes = moment(nodes, [pod_line("a", cpu=1.0), pod_line("b", cpu=2.0, constraints=to_ssd)]).problem.classes
    masks = classes.masks[classes.mask]
    assert masks.tolist() == [[True, False, False, True], [True, False, False, False]]


IS_WEB = (Requirement("app", "In", ("web",)),)


def packed_on(found, machines):
    """Return how many tasks find no place on the first so many machines."""
    problem = found.problem
    order = np.arange(len(problem.classes.count))
    return pack(problem, np.arange(machines), order, "first-fit").pending


def test_pods_that_keep_apart_are_packed_one_on_a_node():
    nodes = [node_line(name, labels={"kubernetes.io/hostname": name}) for name in ("n0", "n1", "n2")]
    apart = Peers(away=(PodTerm("kubernetes.io/hostname", ("shop",), IS_WEB),))
    web = [pod_line(name, cpu=100.0, labels={"app": "web"}, peers=apart) for name in "abc"]
    found = moment(nodes, web)
    assert [packed_on(found, machines) for machines in (1, 2, 3)] == [2, 1, 0]
    other = moment(nodes, [pod_line(name, cpu=100.0, labels={"app": "db"}, peers=apart) for name in "abc"])
    assert packed_on(other, 1) == 0  # nobody is a match


def test_ports_and_labels_of_pods_that_leave_with_their_node_keep_others_away():
    nodes = [node_line(name, labels={"kubernetes.io/hostname": name}) for name in ("n0", "n1")]
    port = Peers(ports=(HostPort(80),))
    agent = pod_line("d", "n0", owner_kind="DaemonSet", labels={"app": "web"}, peers=port)
    apart = Peers(away=(PodTerm("kubernetes.io/hostname", ("*",), IS_WEB),))
    for peers in (port, apart):
        found = moment(nodes, [agent, pod_line("a", peers=peers)])
        assert [packed_on(found, machines) for machines in (1, 2)] == [1, 0]


def test_what_is_not_modelled_is_named_with_how_many_pods_have_it():
    pods = [pod_line("a", unwritten=("volumes", "schedule-anyway")), pod_line("b", unwritten=("volumes",))]
    assert moment([node_line("n0")], pods).not_modelled == [
        "topology spread that need not be met (ScheduleAnyway) (1 pod)",
        "volumes by claims: the nodes that they are tied to (2 pods)",
        *NEVER_MODELLED,
    ]


@pytest.mark.parametrize(
    ("nodes", "pods", "left_out"),
    [
        ([NodeLine(1.0, "x", {"memory": GIB})], [], "1 nodes without cpu to offer, the first: x"),
        (
            [NodeLine(1.0, "x", {"cpu": -1.0, "memory": GIB})],
            [],
            f"1 nodes with an amount that is none (cpu: -1; {AMOUNTS}), the first: x",
        ),
        (
            [],
            [pod_line("p", cpu=math.nan), pod_line("q", cpu=math.nan)],
            f"2 pods with a request that is none (cpu: nan; {AMOUNTS}), the first: shop/p",
        ),
        (
            [],
            [pod_line("p", cpu=1e308)],
            f"1 pods with a request that is none (cpu: 1e+308; {AMOUNTS}), the first: shop/p",
        ),
        (
            [],
            [pod_line("p", cpu=5e-324)],
            f"1 pods with a request that is none (cpu: 4.94066e-324; {AMOUNTS}), the first: shop/p",
        ),
        ([], [pod_line("p", "gone")], "1 pods on nodes that the checkpoint does not have, the first: shop/p on gone"),
        ([], [pod_line("p", opportunistic=True)], "1 pods on idle resources (opportunistic), the first: shop/p"),
    ],
)
def test_what_cannot_be_packed_is_named_and_counted_and_the_rest_is_packed(nodes, pods, left_out):
    found = moment([node_line("n0"), *nodes], [pod_line("a"), *pods])
    assert found.left_out == [left_out]
    assert found.problem.machines == 1
    assert found.problem.classes.tasks == 1
    assert np.isfinite(found.problem.allocated).all()


def test_a_pod_on_a_node_that_is_left_out_is_part_of_the_workload_all_the_same():
    found = moment([node_line("n0"), NodeLine(1.0, "x", {"memory": GIB})], [pod_line("a", "x")])
    assert found.problem.classes.tasks == 1
    assert not found.problem.allocated.any()


@pytest.mark.parametrize(
    ("nodes", "pods", "message"),
    [([], [pod_line("a", None)], "no node that can be packed"), ([node_line("n0")], [], "no pod that can be packed")],
)
def test_nothing_to_pack_is_an_error_that_says_of_what_there_is_none(nodes, pods, message):
    with pytest.raises(TraceError, match=f"here: {message}"):
        moment(nodes, pods)


def test_the_last_checkpoint_of_a_recording_counts_and_a_cut_end_is_named(tmp_path):
    file = tmp_path / "recording"
    whole = [Begin(1.0), Checkpoint(1.0, [node_line("n0")], [pod_line("a")])]
    whole.append(Checkpoint(2.0, [node_line("n0")], [pod_line("a"), pod_line("b")]))
    file.write_bytes(b"".join(map(encoded, whole)) + encoded(End(3.0))[:9])
    found = read_recording(file)
    assert found.problem.classes.tasks == 2
    assert found.left_out == ["the last line (4): the file ends in the middle of it"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 something else\n", r"recording, line 1: .*accepted: one JSON object with a kind of begin"),
        (gzip.compress(encoded(Begin(1.0)), mtime=0), "recording, line 1: this is gzip"),
        (encoded(End(1.0)), "line 1: a recording begins with a line of the kind begin"),
        (encoded(Begin(1.0)) + b'{"kind":"checkpoint"\n', "recording, line 2: "),
        (encoded(Begin(1.0)), "there is no checkpoint in it; record until one is written"),
        (b"", "there is no checkpoint in it"),
    ],
)
def test_a_file_that_is_no_recording_is_named_with_the_line(tmp_path, content, message):
    file = tmp_path / "recording"
    file.write_bytes(content)
    with pytest.raises(TraceError, match=message):
        read_recording(file)


def test_a_recording_may_end_in_blank_lines(tmp_path):
    file = tmp_path / "recording"
    lines = [Begin(1.0), Checkpoint(1.0, [node_line("n0")], [pod_line("a")])]
    file.write_bytes(b"".join(map(encoded, lines)) + b"\n\n")
    assert read_recording(file).left_out == []


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(TraceError, match="none: No such file or directory; accepted: a file of dovetail record"):
        read_recording(tmp_path / "none")

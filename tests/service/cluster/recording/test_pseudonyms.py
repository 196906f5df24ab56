"""No name that a user chose is in an anonymous recording, and what was one name still is one."""

from extender.cluster.eligibility import Constraints, Requirement, Taint, Toleration
from extender.cluster.recording.lines import Checkpoint, NodeGoneLine, NodeLine, PodLine, Quiet, encoded
from extender.cluster.recording.pseudonyms import Pseudonyms

NODE = NodeLine(
    1.0,
    "secret-node",
    {"cpu": 4000.0, "nvidia.com/gpu": 8.0},
    {"topology.kubernetes.io/zone": "secret-zone", "secret-team": "secret-value", "generation": "12"},
    (Taint("secret-taint", "secret-value", "NoSchedule"),),
)
POD = PodLine(
    "secret-uid",
    "secret-space",
    "secret-pod",
    "secret-space/secret-job",
    "secret-queue",
    {"cpu": 500.0},
    5.0,
    node="secret-node",
    stage="secret-stage",
    group="secret-space/secret-group",
    owner="secret-owner",
    constraints=Constraints(
        (("secret-team", "secret-value"),),
        ((Requirement("generation", "Gt", ("11",)), Requirement("metadata.name", "In", ("secret-node",), field=True)),),
        (Toleration("secret-taint", "Equal", "secret-value", "NoSchedule"),),
    ),
    inputs=(("secret-node", 3.0),),
)


def test_no_name_is_left_and_equal_names_stay_equal():
    anonymous = Pseudonyms(b"k" * 32)
    checkpoint = anonymous(Checkpoint(1.0, [NODE], [POD]))
    assert b"secret" not in encoded(checkpoint)
    (node,), (pod,) = checkpoint.nodes, checkpoint.pods
    assert pod.node == node.name == pod.inputs[0][0] == anonymous(NodeGoneLine(2.0, "secret-node")).name
    assert pod.job.split("/")[0] == pod.namespace == pod.group.split("/")[0]
    assert node.offers == NODE.offers
    assert "topology.kubernetes.io/zone" in node.labels


def test_a_pod_may_go_where_it_might_go_under_its_own_name():
    anonymous = Pseudonyms(b"k" * 32)
    others = NodeLine(1.0, "other", {"cpu": 1.0}, {"secret-team": "another", "generation": "12"})
    for node, may in ((NODE, True), (others, False)):
        for there, pod in ((node, POD), (anonymous(node), anonymous(POD))):
            allowed = pod.constraints.allow(there.name, there.labels, there.taints, unschedulable=False)
            assert allowed is may


def test_another_key_gives_other_pseudonyms():
    assert Pseudonyms(b"a" * 32)(POD).name != Pseudonyms(b"b" * 32)(POD).name


def test_a_line_without_names_stays_as_it_is():
    assert Pseudonyms(b"a" * 32)(Quiet(3.0)) == Quiet(3.0)

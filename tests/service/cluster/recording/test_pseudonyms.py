"""No name that a user chose is in an anonymous recording, and what was one name still is one."""

from msgspec.structs import replace

from extender.cluster.eligibility import Constraints, Requirement, Taint, Toleration
from extender.cluster.peers import HostPort, Peers, PodTerm, TopologySpread
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
    labels={"secret-label": "secret-value", "app.kubernetes.io/name": "secret-app"},
    peers=Peers(
        away=(
            PodTerm(
                "kubernetes.io/hostname", ("secret-space",), (Requirement("secret-label", "In", ("secret-value",)),)
            ),
        ),
        near=(PodTerm("secret-rack", ("*",), (Requirement("app.kubernetes.io/name", "NotIn", ("secret-app",)),)),),
        spread=(TopologySpread(PodTerm("secret-rack", ("secret-space",), ()), most=2),),
        ports=(HostPort(80), HostPort(81, "UDP", "secret-address")),
    ),
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


def test_a_pod_that_others_select_is_selected_under_its_pseudonyms_and_no_other_is():
    anonymous = Pseudonyms(b"k" * 32)
    other = replace(POD, labels={"secret-label": "another"})
    for pod, selected in ((POD, (True, False, True)), (other, (False, True, True))):
        hidden, peers = anonymous(pod), anonymous(POD).peers
        assert tuple(term.selects(pod.namespace, pod.labels) for term in POD.peers.terms) == selected
        assert tuple(term.selects(hidden.namespace, hidden.labels) for term in peers.terms) == selected
    assert anonymous(POD).peers.away[0].key == "kubernetes.io/hostname"
    assert anonymous(POD).peers.spread[0].most == 2
    assert anonymous(POD).peers.ports[0] == HostPort(80)


def test_a_name_that_a_user_chose_is_hidden_in_kubernetes_own_domains_too():
    keys = ["node-role.kubernetes.io/secret", "secretk8s.io/x", "kubernetes.io.secret/os", "dovetail.dev/secret"]
    keys += ["node-restriction.kubernetes.io/secret", "metadata.name.secret", "secret.kubernetes.io/arch"]
    known = ["node-role.kubernetes.io/control-plane", "kubernetes.io/os", "node.kubernetes.io/unschedulable"]
    anonymous = Pseudonyms(b"k" * 32)
    node = replace(NODE, labels=dict.fromkeys([*keys, *known], "12"), taints=())
    pods = [replace(POD, constraints=Constraints(selector=((key, "12"),))) for key in node.labels]
    hidden = anonymous(node)
    assert b"secret" not in encoded(hidden)
    assert set(known) <= hidden.labels.keys()
    assert len(hidden.labels) == len(node.labels)
    for pod in map(anonymous, pods):
        assert pod.constraints.allow(hidden.name, hidden.labels, (), unschedulable=False)


def test_another_key_gives_other_pseudonyms():
    assert Pseudonyms(b"a" * 32)(POD).name != Pseudonyms(b"b" * 32)(POD).name


def test_a_line_without_names_stays_as_it_is():
    assert Pseudonyms(b"a" * 32)(Quiet(3.0)) == Quiet(3.0)

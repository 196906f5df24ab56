"""A pod is tied to the nodes that can use its volumes, as far as these are known."""

from dataclasses import replace

from extender.cluster.eligibility import Requirement
from extender.cluster.events import NodesListed
from extender.cluster.model import Claim, Node, Pod, Volume
from extender.cluster.recording.observed import Moments, PodsObserved
from extender.cluster.recording.recorder import ClusterRecorder
from lab.packing.moment import NEVER_MODELLED, moment_of
from lab.packing.volumes import Bound
from tests.lab.packing.small import GIB

ON_N1 = ((Requirement("kubernetes.io/hostname", "In", ("n1",)),),)
BOUND = Bound.of(
    [Claim("shop/here", "local"), Claim("shop/anywhere", "network"), Claim("shop/new"), Claim("shop/lost", "gone")],
    [Volume("local", ON_N1), Volume("network")],
)


def pod(*claims):
    """Return a pod with these claims of its namespace."""
    demand = {"cpu": 100.0, "memory": GIB}
    return Pod("u", "shop", "p", demand, claims=tuple(f"shop/{claim}" for claim in claims))


def tied(one):
    found = BOUND.tied(PodsObserved([one], [Moments(unwritten=("volumes",) if one.claims else ())]))
    return found.pods[0].constraints.volumes, found.moments[0].unwritten


def test_a_pod_goes_where_all_its_volumes_can_be_used():
    assert tied(pod("here", "anywhere")) == ((ON_N1,), ())
    assert tied(pod("anywhere")) == ((), ())
    assert tied(pod()) == ((), ())


def test_of_a_claim_without_a_volume_nobody_knows_to_which_nodes_it_ties():
    assert tied(pod("here", "new")) == ((ON_N1,), ("volumes",))
    assert tied(pod("lost")) == ((), ("volumes",))
    assert tied(pod("not-there")) == ((), ("volumes",))


def test_a_pod_that_is_tied_to_a_node_may_go_to_no_other():
    offers = {"cpu": 4000.0, "memory": 8 * GIB}
    nodes = [Node(name, offers, labels={"kubernetes.io/hostname": name}) for name in ("n0", "n1")]
    recorder = ClusterRecorder(0.0)
    for event in (NodesListed(nodes), BOUND.tied(PodsObserved([replace(pod("here"), node="n1")], [Moments()]))):
        assert not [*recorder.take(event, 1.0)]
    moment = moment_of(recorder.checkpoint(2.0), "here")
    assert moment.problem.classes.masks.tolist() == [[False, True]]
    assert moment.not_modelled == list(NEVER_MODELLED)

"""Who is a match of whom is what selectors say, however matches are looked up."""

import numpy as np

from extender.cluster.eligibility import Requirement
from extender.cluster.peers import Peers, PodTerm
from lab.packing.relations import relate
from tests.lab.packing.small import node, task

SELECTORS = (
    None,
    (),
    (Requirement("app", "In", ("web",)),),
    (Requirement("app", "In", ("web", "db")),),
    (Requirement("app", "NotIn", ("web",)),),
    (Requirement("tier", "Exists"),),
    (Requirement("app", "In", ("web",)), Requirement("tier", "In", ("a",))),
    (Requirement("app", "In", ("db", "web")), Requirement("tier", "In", ("a",))),
)


def test_a_task_is_a_match_of_the_selectors_that_select_it():
    terms = [PodTerm("zone", names, selector) for selector in SELECTORS for names in (("n",), ("*",), ("m", "n"))]
    asking = [task(peers=Peers(away=(term,))) for term in terms]
    labelled = [
        task(namespace=namespace, labels=labels)
        for namespace in ("m", "n", "o")
        for labels in ((), (("app", "web"),), (("app", "db"), ("tier", "a")), (("app", "web"), ("tier", "a")))
    ]
    _, ties = relate([*asking, *labelled], [], [node("m0")], lambda _: np.ones(1, dtype=np.bool_))
    matcher = [tied.away[0][0] for tied in ties[: len(asking)]]
    for one, tied in zip(labelled, ties[len(asking) :], strict=True):
        selecting = [term.selects(one.namespace, dict(one.labels)) for term in terms]
        assert sorted(tied.matched) == sorted(row for row, does in zip(matcher, selecting, strict=True) if does)

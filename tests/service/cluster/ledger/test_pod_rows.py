"""The opportunistic pods of a ledger as arrays that follow what changes: always the same as those made anew."""

import random

import numpy as np

from extender.cluster.events import NodesListed, PodGone, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, Pod
from extender.cluster.resources import CPU

NODES = [Node(name, {CPU: 1000.0}) for name in ("a", "b")]


def pod(uid, node, *, version=1, started=None):
    return Pod(
        uid, "default", uid, {CPU: 100.0}, node=node, opportunistic=True, resource_version=version, started=started
    )


def ledger(pods):
    filled = Ledger(in_flight_seconds=15.0)
    for event in (NodesListed(NODES), *map(PodSeen, pods)):
        filled.apply(event)
    return filled


def rows(pods):
    return list(zip(pods.uids, pods.node.tolist(), pods.demand[:, 0].tolist(), pods.started.tolist(), strict=True))


def test_whatever_comes_changes_and_goes_the_rows_are_those_of_who_is_there():
    draw = random.Random(0)
    lived, there = ledger([]), {}
    for version in range(1, 300):
        uid = f"p{draw.randrange(30)}"
        if uid in there and draw.random() < 0.5:
            del there[uid]
            lived.apply(PodGone(uid))
        else:
            node = there[uid].node if uid in there else draw.choice("ab")
            there[uid] = pod(uid, node, version=version, started=float(version))
            lived.apply(PodSeen(there[uid]))
        pods = lived.snapshot(0.0).opportunistic
        if draw.random() < 0.5:  # otherwise nobody asks, and changes pile up
            assert rows(pods) == rows(ledger(there.values()).snapshot(0.0).opportunistic)
    assert len(there) > 5


def test_the_rows_of_pods_that_are_there_are_found_by_uid():
    pods = ledger([pod(uid, "a") for uid in ("p", "r", "t")]).snapshot(0.0).opportunistic
    assert pods.rows_of({"t", "q", "p", "z"}).tolist() == [0, 2]
    assert pods.rows_of(()).tolist() == []
    assert ledger([]).snapshot(0.0).opportunistic.rows_of({"p"}).tolist() == []


def test_an_earlier_snapshot_keeps_its_rows():
    filled = ledger([pod("p", "a")])
    before = filled.snapshot(0.0).opportunistic
    filled.apply(PodGone("p"))
    assert filled.snapshot(0.0).opportunistic.uids == ()
    assert before.uids == ("p",)
    assert np.array_equal(before.node, [0])

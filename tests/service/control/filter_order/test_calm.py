"""Nobody has to wait, and no plan is needed to say so: nobody is held or was refused, and much is free."""

import dataclasses

import pytest

from extender.cluster.events import NodesListed, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import HOLD_GATE
from extender.control.backlog.backlog import Backlog
from extender.control.filter_order.calm import calm_demand
from tests.service.control.filter_order.asked import free
from tests.service.control.scene import OURS, node


def demand_of(*pods, cpu=1000.0):
    """Return the CPU that calm pods need, on two nodes with half of it each; None where somebody may have to wait."""
    ledger, backlog = Ledger(in_flight_seconds=15.0), Backlog([OURS], by_filter=True)
    for event in (NodesListed((node("a", cpu / 2), node("b", cpu / 2))), *map(PodSeen, pods)):
        backlog.apply(event, 0.0)
        ledger.apply(event)
    demand = calm_demand(backlog, ledger.snapshot(0.0))
    return None if demand is None else demand[0]


def test_pods_that_need_half_of_what_is_free_at_most_are_calm():
    assert demand_of() == 0
    assert demand_of(free("a", 300), free("b", 200)) == 500
    assert demand_of(free("a", 300), free("b", 201)) is None


def test_what_others_hold_is_not_free():
    assert demand_of(free("there", 400, node="a"), free("p", 300)) == 300
    assert demand_of(free("there", 401, node="a"), free("p", 300)) is None


def test_what_others_are_nominated_for_is_not_free():
    others = dataclasses.replace(free("theirs", 400), scheduler="another", nominated="a")
    assert demand_of(others, free("p", 300)) == 300
    assert demand_of(dataclasses.replace(others, demand={"cpu": 401.0}), free("p", 300)) is None


@pytest.mark.parametrize(
    "particular",
    [{"gates": (HOLD_GATE,)}, {"unschedulable": True}],
    ids=["held", "refused"],
)
def test_where_one_is_held_or_was_refused_somebody_may_have_to_wait(particular):
    calm = free("p", 10)
    assert demand_of(calm) == 10
    fields = {name: getattr(calm, name) for name in calm.__dataclass_fields__} | particular
    assert demand_of(type(calm)(**fields)) is None

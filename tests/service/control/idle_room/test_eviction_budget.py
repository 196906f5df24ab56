import pytest

from extender.control.idle_room.eviction_budget import PERIOD_SECONDS, EvictionBudget
from extender.policy.peak import SigmaRule

RULE = SigmaRule(budget=0.01)


def after_an_hour(evicted, running=100):
    budget = EvictionBudget(RULE)
    budget.advance(0.0, running, 0)
    for step in range(1, 120):
        budget.advance(30.0 * step, running, 0)
    assert budget.sigmas == RULE.start
    budget.advance(PERIOD_SECONDS, running, evicted)
    return budget.sigmas


def test_n_falls_by_a_tenth_in_an_hour_without_evictions_and_rises_where_there_were_more_than_the_budget():
    # Of 100 pods one an hour is the budget.
    assert after_an_hour(0) == pytest.approx(4.9)
    assert after_an_hour(1) == pytest.approx(5.0)
    assert after_an_hour(3) == pytest.approx(5.2)
    assert after_an_hour(50) == pytest.approx(6.0)


def test_the_budget_goes_by_how_long_pods_ran():
    # Of 300 pods three an hour are the budget.
    assert after_an_hour(3, running=300) == pytest.approx(5.0)


def test_each_hour_is_counted_anew():
    budget = EvictionBudget(RULE)
    budget.advance(0.0, 100, 50)
    budget.advance(3600.0, 100, 0)
    assert budget.sigmas == pytest.approx(6.0)
    budget.advance(7200.0, 100, 0)
    assert budget.sigmas == pytest.approx(5.9)

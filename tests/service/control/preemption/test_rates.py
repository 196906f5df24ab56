"""How many evictions may be asked for: in any minute, together, and after a clock was set back."""

from hypothesis import given
from hypothesis import strategies as st

from extender.control.preemption.rates import EvictionRates, Rates

STEPS = st.lists(
    st.tuples(st.floats(0, 40), st.sampled_from(["n1", "n2"]), st.integers(1, 30)), min_size=1, max_size=60
)


@given(STEPS, st.integers(1, 20), st.integers(1, 30))
def test_in_any_minute_no_more_go_than_the_rates_say_of_a_node_and_in_all(steps, per_node, in_all):
    rates, asked, now = EvictionRates(Rates(per_node, in_all)), [], 0.0
    for seconds, node, wanted in steps:
        now += seconds
        count = min(rates.most(node, now), wanted)
        if count:
            assert rates.allow({node: count}, now)
            rates.take(node, count, now)
            asked.append((now, node, count))
    for end, _, _ in asked:
        minute = [(node, count) for at, node, count in asked if end - 60 < at <= end]
        assert sum(count for _, count in minute) <= in_all
        assert all(sum(count for name, count in minute if name == node) <= per_node for node in ("n1", "n2"))


def test_a_minutes_worth_may_go_at_once_and_after_it_nobody_for_as_long_as_that_takes():
    rates = EvictionRates(Rates(per_node=60, in_all=600))
    assert rates.most("n1", 0.0) == 60
    rates.take("n1", 10, 0.0)
    assert rates.most("n1", 9.0) == 0  # one a second: ten have to be earned
    assert rates.most("n1", 10.0) == 50
    assert rates.most("n2", 10.0) == 60
    assert rates.most("n1", 60.0) == 60


def test_many_nodes_share_the_rate_in_all():
    rates = EvictionRates(Rates(per_node=60, in_all=600))
    for node in range(12):
        rates.take(f"n{node}", 2, 0.0)
    assert rates.most("n99", 1.0) == 0  # 24 of 10 a second
    assert rates.allow({"n99": 2}, 3.0)
    assert not rates.allow({"n99": 61}, 3.0)


def test_a_rate_below_one_allows_one_after_so_much_longer():
    rates = EvictionRates(Rates(per_node=60, in_all=0.5))
    rates.take("n1", 1, 0.0)
    assert (rates.most("n1", 119.0), rates.most("n1", 121.0)) == (0, 1)


def test_a_clock_that_is_set_back_lets_evictions_go_on_after_a_minute():
    rates = EvictionRates(Rates(per_node=1, in_all=1))
    rates.take("n1", 1, 10_000.0)
    assert rates.most("n1", 100.0) == 0
    assert rates.most("n1", 161.0) == 1


def test_a_node_that_has_gone_is_forgotten():
    rates = EvictionRates(Rates(per_node=1, in_all=600))
    rates.take("n1", 1, 0.0)
    rates.keep(["n2"])
    assert rates.most("n1", 0.5) == 1

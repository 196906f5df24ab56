"""The resource axis: quantities and what counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.cluster.resources import (
    LARGEST,
    add,
    countable,
    greatest,
    io_amounts,
    is_extended,
    offered,
    parse_quantity,
)
from extender.errors import BadQuantity


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("3", 3),
        ("+3", 3),
        ("0", 0),
        ("-0", 0),
        ("2.", 2),
        ("5000000000n", 5),
        ("5000000u", 5),
        ("5000m", 5),
        ("2k", 2_000),
        ("2M", 2_000_000),
        ("2G", 2_000_000_000),
        ("2T", 2 * 10**12),
        ("2P", 2 * 10**15),
        ("0.001E", 10**15),
        ("1Ki", 1_024),
        ("1Mi", 1_024**2),
        ("1Gi", 1_024**3),
        ("1Ti", 1_024**4),
        ("1Pi", 1_024**5),
        ("0.001Ei", 1_152_921_504_606_847),  # 2**60 / 1000 = 1152921504606846.976
        ("1.5Gi", 1_610_612_736),  # 1.5 x 2**30
        ("12e2", 1_200),
        ("12E2", 1_200),
        ("1.2e+3", 1_200),
        (".5e1", 5),
        ("1000e-3", 1),
        (7, 7),
        (2.0, 2),
    ],
)
def test_each_form_that_kubernetes_accepts_is_read(text, amount):
    assert parse_quantity(text) == amount


@pytest.mark.parametrize(("text", "amount"), [("0.5", 1), ("2.5", 3), ("1n", 1), ("1500m", 2), ("0.1Ki", 103)])
def test_a_fraction_is_rounded_up_as_kubernetes_does(text, amount):
    assert parse_quantity(text) == amount


def test_cpu_is_counted_in_millicores_and_rounded_up_there():
    assert parse_quantity("0.5", per_unit=1000) == 500
    assert parse_quantity("100.5m", per_unit=1000) == 101
    assert parse_quantity("1n", per_unit=1000) == 1


@pytest.mark.parametrize("text", ["-1", "-0.5", "-1Ki", "-2e3", -1])
def test_a_negative_quantity_is_refused(text):
    with pytest.raises(BadQuantity, match="is negative; accepted: zero or more"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["9007199254740992", "1E", "8Pi", "1e400", "1e999", 1e22, float(2**53)])
def test_a_quantity_that_sums_could_not_hold_exactly_is_refused(text):
    with pytest.raises(BadQuantity, match="is too large"):
        parse_quantity(text)


def test_a_quantity_that_is_too_large_names_the_largest_in_its_own_unit():
    with pytest.raises(BadQuantity, match=r"'9e15' is too large; accepted: below 9007199254740\.992"):
        parse_quantity("9e15", per_unit=1000)
    with pytest.raises(BadQuantity, match="'1E' is too large; accepted: below 9007199254740992"):
        parse_quantity("1E")


def test_the_largest_quantity_is_one_below_2_to_the_53():
    assert parse_quantity("9007199254740991") == LARGEST - 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 Gi",
        "1K",
        "1KiB",
        "Gi",
        "1.2.3",
        "1e",
        "e3",
        "--1",
        "1e1234",
        "0x10",
        "1_000",
        "\u0663",
        "nan",
        "inf",
    ],
)
def test_garbage_is_refused_with_its_text_and_what_is_accepted(text):
    with pytest.raises(BadQuantity) as caught:
        parse_quantity(text)
    assert repr(text) in str(caught.value)
    assert "accepted: numbers such as" in str(caught.value)


@pytest.mark.parametrize("value", [True, False, None, [], {}, float("nan"), float("inf"), b"1"])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(BadQuantity, match="is not a quantity"):
        parse_quantity(value)


@given(st.integers(0, 2**53 - 1))
def test_a_whole_number_is_read_as_it_stands(number):
    assert parse_quantity(str(number)) == number


@given(st.integers(0, 10**9), st.integers(1, 1000))
def test_milli_units_round_up_to_the_next_whole(millis, per_unit):
    assert parse_quantity(f"{millis}m", per_unit=per_unit) == -(-millis * per_unit // 1000)


@given(st.text(max_size=12))
def test_any_text_gives_a_whole_amount_or_is_refused(text):
    try:
        amount = parse_quantity(text)
    except BadQuantity:
        return
    assert amount == int(amount)
    assert 0 <= amount < LARGEST


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("nvidia.com/gpu", True),
        ("example.com/foo.bar", True),
        ("gpu", False),
        ("hugepages-2Mi", False),
        ("ephemeral-storage", False),
        ("kubernetes.io/batteries", False),
        ("sub.kubernetes.io/thing", False),
        ("requests.example.com/gpu", False),
    ],
)
def test_an_extended_resource_is_one_of_a_foreign_domain(name, extended):
    assert is_extended(name) is extended


BATCH = "kubernetes.io/batch-cpu"
"""Koordinator's, of what others reserved and do not use."""


def test_what_kube_scheduler_counts_is_counted():
    quantities = {
        "cpu": "2",
        "memory": "1Ki",
        "ephemeral-storage": "1Ki",
        "hugepages-2Mi": "2Mi",
        "a.b/gpu": "3",
        BATCH: "900",
    }
    others = {"pods": "110", "attachable-volumes-x": "5", "requests.nvidia.com/gpu": "1"}
    counted = {
        "cpu": 2000,
        "memory": 1024,
        "ephemeral-storage": 1024,
        "hugepages-2Mi": 2 * 2**20,
        "a.b/gpu": 3,
        BATCH: 900,
    }
    assert countable(quantities | others) == counted
    assert offered(quantities | others) == counted | {"pods": 110}


def test_what_kubernetes_accepts_but_is_too_large_counts_as_the_largest_amount():
    assert countable({"memory": "16E", "a.b/c": "-1"}) == {"memory": LARGEST - 1, "a.b/c": 0}


def test_an_io_rate_that_is_unknown_or_wrong_is_named():
    assert io_amounts({"disk-read": "1Ki", "network-out": 5}) == {"disk-read": 1024, "network-out": 5}
    with pytest.raises(BadQuantity, match="'cpu' is not a dimension; accepted: disk-read, disk-write, network-in"):
        io_amounts({"cpu": "1"})
    with pytest.raises(BadQuantity, match=r"^disk-read: 'fast' is not a quantity"):
        io_amounts({"disk-read": "fast"})


def test_add_and_greatest_work_dimension_by_dimension():
    assert add({"cpu": 1, "memory": 2}, {"memory": 3, "a.b/c": 4}) == {"cpu": 1, "memory": 5, "a.b/c": 4}
    assert greatest([{"cpu": 1, "memory": 5}, {"cpu": 4}, {}]) == {"cpu": 4, "memory": 5}

from dataclasses import fields
from pathlib import Path

import pytest

from lab.sim.workloads.parameters import Parameters, table, variants

DOCS = Path(__file__).parents[4] / "docs" / "results" / "workloads.md"


def test_every_value_stands_in_the_table_with_a_reason():
    entries = table()
    usual = Parameters()
    assert {entry.name for entry in entries} == {
        f"{group.name}.{value.name}" for group in fields(usual) for value in fields(getattr(usual, group.name))
    }
    assert all(entry.about.why and entry.about.unit for entry in entries)


def test_the_documentation_shows_the_table_as_it_is():
    text = DOCS.read_text(encoding="utf-8")
    for entry in table():
        name, value, ends, why = entry.cells
        assert f"| `{name}` | {value} | {ends} | {why} |" in text


def test_a_value_is_shown_in_the_unit_of_the_table():
    cells = {entry.name: entry.cells for entry in table()}
    assert cells["suite.high_cpu"][1:3] == ("0.85 to 1 cores", "0.7 to 0.85; 1 to 1.3")
    assert cells["suite.disk"][1:3] == ("1,600 MB/s", "1,000; 2,000")
    assert cells["suite.jobs"][1:3] == ("110 jobs", "")


def test_what_is_reported_over_lies_around_the_value():
    for entry in table():
        if entry.about.low is not None:
            low, value, high = (
                sum(ends) if isinstance(ends, tuple) else ends
                for ends in (entry.about.low, entry.value, entry.about.high)
            )
            assert low < value < high, entry.name


def test_variants_change_one_value_at_a_time():
    found = dict(variants("suite"))
    ranged = [entry for entry in table() if entry.name.startswith("suite.") and entry.about.low is not None]
    assert len(found) == 2 * len(ranged)
    low = found["suite.disk low"]
    assert (low.suite.disk, low.facebook) == (1000e6, Parameters().facebook)
    usual = Parameters().suite
    assert [value.name for value in fields(usual) if getattr(low.suite, value.name) != getattr(usual, value.name)] == [
        "disk"
    ]


def test_a_group_that_does_not_exist_is_an_error():
    with pytest.raises(AttributeError):
        list(variants("nothing"))

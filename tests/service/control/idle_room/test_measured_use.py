from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose

from extender.cluster.ledger.layout import layout_of
from extender.cluster.model import Node
from extender.cluster.node_terms import OpportunisticTerms
from extender.cluster.resources import DIMENSIONS
from extender.cluster.usage import Sample, Usage
from extender.control.idle_room.measured_use import MeasuredRows, measured_use

AMOUNTS = {"cpu": 8000.0, "memory": 100.0, "x.y/gpu": 2.0}
LAYOUT = layout_of({name: Node(name, AMOUNTS) for name in ("a", "b")})
NAN = np.nan


def sample(cpu, at=100.0, since=90.0, **more):
    return Sample({"cpu": cpu, **more}, since, at)


def cpu(usage, layout=LAYOUT):
    return measured_use(layout, usage).used[:, 0]


def test_what_a_node_uses_counts_in_its_row_and_what_was_not_measured_is_unknown():
    found = measured_use(LAYOUT, Usage({"b": sample(1000.0, memory=40.0)}))
    assert_allclose(found.used[1], [1000, 40, *[NAN] * (len(LAYOUT.axis) - 2)])
    assert np.isnan(found.used[0]).all()
    assert_allclose(found.at, [NAN, 100.0])
    assert_allclose(found.since, [NAN, 90.0])


def test_extended_resources_are_never_measured():
    found = measured_use(LAYOUT, Usage({"a": sample(1.0)}, {"a": sample(1.0)}))
    assert np.isnan(found.used[:, len(DIMENSIONS) :]).all()


def test_the_system_may_use_what_is_set_aside_for_it():
    usage = Usage({"a": sample(3000.0), "b": sample(3000.0)}, {"a": sample(500.0), "b": sample(2500.0)})
    layout = layout_of(
        {name: Node(name, AMOUNTS, terms=OpportunisticTerms(system={"cpu": 1000.0})) for name in ("a", "b")}
    )
    assert_allclose(cpu(usage, layout=layout), [2000, 2500])


def test_the_memory_of_pods_that_have_ended_is_free_and_their_rates_were_used():
    # Of 98 that pods of a had, 30 are of one that has ended; the node itself says 60. On b the node says 75.
    pods = {name: sample(3000.0, memory=98.0) for name in ("a", "b")}
    nodes = {"a": sample(3000.0, memory=60.0), "b": sample(3000.0, memory=75.0)}
    ended = {"cpu": 1000.0, "memory": 30.0}
    found = measured_use(LAYOUT, Usage(nodes, pods, gone={"a": ended, "b": ended}))
    assert_allclose(found.used[:, :2], [[3000, 68], [3000, 75]])
    assert_allclose(found.gone[:, :2], [[1000, 0], [1000, 0]])


def test_a_node_with_a_problem_is_not_measured():
    assert_allclose(cpu(Usage({"a": sample(1.0), "b": sample(2.0)}, problems={"a": "twice"})), [NAN, 2])


def test_a_node_that_is_not_there_is_no_matter():
    assert_allclose(cpu(Usage({"c": sample(1.0)})), [NAN, NAN])


def test_the_window_of_two_books_is_the_older_of_both():
    usage = Usage({"a": sample(1.0, at=95.0, since=80.0)}, {"a": sample(1.0, at=99.0, since=89.0)})
    found = measured_use(LAYOUT, usage)
    assert (found.since[0], found.at[0]) == (80.0, 95.0)


def test_what_was_made_of_one_look_is_used_again_until_the_next():
    layout = layout_of({"n1": Node("n1", {"cpu": 1000.0})})
    usage = Usage({"n1": Sample({"cpu": 300.0}, 90.0, 100.0)})
    rows = MeasuredRows()
    assert rows.of(layout, usage).used[0, 0] == 300
    assert rows.of(layout, usage) is rows.of(layout, usage)
    assert rows.of(layout, Usage({"n1": Sample({"cpu": 400.0}, 90.0, 110.0)})).used[0, 0] == 400


def test_other_rows_are_made_for_another_layout():
    usage = Usage({"n1": Sample({"cpu": 300.0}, 90.0, 100.0)})
    rows = MeasuredRows()
    nodes = {name: Node(name, {"cpu": 1000.0}) for name in ("n0", "n1")}
    assert rows.of(layout_of({"n1": nodes["n1"]}), usage).used[:, 0].tolist() == [300]
    assert np.isnan(rows.of(layout_of(nodes), usage).used[0, 0])
    assert rows.of(layout_of(nodes), usage).used[1, 0] == 300


def test_how_long_regular_pods_wait_is_known_as_long_as_their_samples_are_there_and_trusted():
    usage = Usage({}, {"a": sample(1.0), "b": sample(1.0)}, {}, {"b": "two series"}, {"a": 0.25, "b": 0.5, "x": 1.0})
    pressure = measured_use(LAYOUT, usage).pressure
    assert pressure[LAYOUT.rows["a"]] == 0.25
    assert np.isnan(pressure[LAYOUT.rows["b"]])
    assert np.isnan(measured_use(LAYOUT, replace(usage, pods_on={})).pressure).all()

"""Rows of the cluster benchmark: medians, ratios within rounds, CPU time a pod."""

import pytest

from lab.bench.cluster.contenders import AUTO, CONTENDERS, FILTER, GATES, STOCK, STOCK_ALL
from lab.bench.cluster.throughput import SCHEDULER, ThroughputRun, report


def run(contender, seconds, *, nodes=5000, pods=100, **more):
    told = {"created": 0.5, "cpu": {SCHEDULER: 0.2}, "off_nominated": 0, "over_allocated": 0, **more}
    return ThroughputRun(contender, nodes, pods, seconds, **told)


def rows(*runs):
    return {row.id: row for row in report(runs).rows}


def test_the_throughput_is_the_median_of_the_runs_and_its_note_has_each():
    # 100 pods in 1, 2 and 5 s are 100, 50 and 20 a second.
    found = rows(run(GATES, 1), run(GATES, 5), run(GATES, 2))["throughput.5000"]
    assert (found.ours, found.unit) == (50, "pods/s")
    assert found.note.endswith("median of 100, 20, 50")


def test_ratios_are_of_runs_of_the_same_round_and_their_median():
    # Ours 50, 100 and 10 a second, stock 100, 50 and 20 in the same rounds: ratios of 0.5, 2 and 0.5.
    ours, stock = ([run(who, seconds) for seconds in taken] for who, taken in ((GATES, (2, 1, 10)), (STOCK, (1, 2, 5))))
    found = rows(*ours, *stock, run(STOCK_ALL, 10))
    assert found["throughput.ratio.5000"].ours == 0.5
    assert found["throughput.ratio.5000"].note.endswith("0.5, 2, 0.5")
    assert found["throughput.vs_all.5000"].ours == 5


def test_a_ratio_to_a_contender_that_did_not_run_is_left_out():
    assert not {"throughput.ratio.5000", "throughput.vs_all.5000"} & rows(run(GATES, 2)).keys()


def test_the_scheduler_s_cpu_time_is_milliseconds_a_pod():
    # 0.2 and 0.4 s for 100 pods are 2 and 4 ms a pod; the median of two is their mean.
    found = rows(run(GATES, 1), run(GATES, 1, cpu={SCHEDULER: 0.4}), run(STOCK, 1))
    assert found["cpu_ms_per_pod.5000"].ours == 3
    assert found["cpu_ms_per_pod.stock.5000"].ours == 2


def test_a_process_that_did_not_run_has_no_row():
    found = rows(run(GATES, 1, cpu={SCHEDULER: 0.2, "dovetail-control": 0.1}), run(STOCK, 1))
    assert found["cpu_ms.control.5000"].ours == 1
    assert "cpu_ms.control.stock.5000" not in found


def test_over_allocation_is_added_up_over_all_runs():
    found = rows(run(GATES, 1, over_allocated=1), run(GATES, 1, over_allocated=2), run(STOCK, 1))
    assert found["over_allocated.5000"].ours == 3
    assert found["over_allocated.stock.5000"].ours == 0


def test_pods_elsewhere_than_nominated_are_added_up_over_all_runs():
    found = rows(run(GATES, 1, off_nominated=2), run(GATES, 1, off_nominated=1))
    assert found["off_nominated.5000"].ours == 3


def test_a_run_that_did_not_begin_quiet_is_noted():
    found = rows(run(GATES, 1, quiet=False), run(GATES, 1))
    assert "1 of the runs did not begin quiet" in found["throughput.5000"].note


def test_writes_are_a_pod_s_over_all_runs_and_the_note_says_which():
    found = rows(run(GATES, 1, writes={"PATCH pods": 100, "POST pods": 100}), run(GATES, 1, writes={"POST pods": 100}))
    assert found["writes_per_pod.5000"].ours == 1.5
    assert found["writes_per_pod.5000"].note.endswith("POST pods 1.00, PATCH pods 0.50")


def test_latencies_are_medians_and_compared_with_stock_the_worst_at_last():
    burst = [run(AUTO, 1, latency={"burst": seconds}) for seconds in (0.2, 0.9, 0.3)]
    stock = run(STOCK, 1, latency={"burst": 0.2, "steady": 0.1})
    found = rows(*burst, run(AUTO, 1, latency={"steady": 0.2}), stock)
    assert found["latency.auto.burst.5000"].ours == 0.3
    assert found["latency.auto.burst_vs_stock.5000"].ours == 1.5
    assert found["latency.auto.steady_vs_stock.5000"].ours == 2
    assert found["latency.auto.mean_vs_stock"].ours == 2


def test_latencies_without_stock_are_not_compared():
    assert not [name for name in rows(run(AUTO, 1, latency={"burst": 0.2})) if name.endswith("vs_stock")]


def test_people_see_the_latencies_in_a_table_with_how_many_times_the_stock_schedulers():
    stock, ours = ({"burst": seconds, "steady": 0.1} for seconds in (0.2, 0.5))
    small = [run(STOCK, 1, latency=stock), run(AUTO, 1, latency=ours)]
    large = [run(who, 1, nodes=6000, latency={"burst": 1.0}) for who in (GATES, AUTO)]
    *_, table = report([*small, *large, run(FILTER, 1)]).tables
    assert [str(column.header) for column in table.columns] == [
        "",
        "5,000 nodes, all created at once",
        "5,000 nodes, 20 created a second",
        "6,000 nodes, all created at once",
    ]
    assert list(zip(*(column.cells for column in table.columns), strict=True)) == [
        ("stock", "0.20", "0.10", ""),
        ("auto", "0.50 (2.50)", "0.10 (1.00)", "1.00"),
        ("gates", "", "", "1.00"),
    ]


def test_every_size_has_its_rows_and_its_table():
    found = report([run(contender, 1, nodes=nodes) for nodes in (5000, 1000) for contender in CONTENDERS])
    ids = {row.id for row in found.rows}
    for nodes in (1000, 5000):
        for name in (
            "",
            ".stock",
            ".stock_all",
            ".filter",
            ".chosen",
            ".auto",
            ".ratio",
            ".chosen.ratio",
            ".auto.ratio",
            ".vs_all",
        ):
            assert f"throughput{name}.{nodes}" in ids
    assert [table.row_count for table in found.tables] == [7, 7]


def test_the_table_says_who_over_allocated_and_how_many_pods_are_elsewhere_than_nominated():
    (table,) = report([run(GATES, 1, off_nominated=1), run(STOCK, 1, over_allocated=3)]).tables
    assert "bound elsewhere than nominated: 1 pods" in table.caption
    assert "over-allocated (node, dimension) pairs: stock 3, gates 0" in table.caption


@pytest.mark.parametrize("contender", [STOCK, STOCK_ALL, AUTO, GATES, FILTER])
def test_only_dovetail_as_it_is_shipped_goes_without_a_name(contender):
    expected = "throughput.7" if contender is GATES else f"throughput.{contender.name}.7"
    assert contender.row_id("throughput", 7) == expected

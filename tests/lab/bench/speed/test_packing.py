"""The benchmark of packing reports what it measured, of clusters whose constraints matter."""

import json

from click.testing import CliRunner

from lab.bench.commands import bench
from lab.bench.speed.packing import PackingSize, cluster


def test_the_quick_form_reports_seconds_and_memory_of_its_largest_cluster():
    result = CliRunner().invoke(bench, ["packing", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    rows = {row["id"]: row for row in json.loads(result.stdout)["rows"]}
    assert set(rows) == {"compaction_s.100", "inflation_s.100", "holes_s.100", "rss_mib.100"}
    assert all(row["ours"] > 0 for row in rows.values())


def test_the_drawn_cluster_has_unequal_machines_bound_classes_and_groups():
    classes = cluster(PackingSize(60, 40)).classes
    assert (classes.count == 50).all()
    assert 0 < (~classes.masks[classes.mask].all(axis=1)).sum() < 40
    assert 0 < (classes.group >= 0).sum() < 40


def test_the_drawn_cluster_is_the_same_each_time():
    first, second = (cluster(PackingSize(60, 40)) for _ in range(2))
    assert (first.capacity == second.capacity).all()
    for field in ("demand", "count", "mask", "masks", "group"):
        assert (getattr(first.classes, field) == getattr(second.classes, field)).all(), field

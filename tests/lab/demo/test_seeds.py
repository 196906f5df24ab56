"""The demo over several seeds: medians, ranges, and which seed is shown."""

import io

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from lab.controlplane.processes import Load
from lab.demo.commands import demo
from lab.demo.comparison import compare
from lab.demo.room import Times
from lab.demo.run import DOVETAIL, STOCK, RunOutcome
from lab.demo.seeds import Seeds
from lab.demo.workload import QUICK, generate


def compared(seed, makespan):
    """Return a made-up comparison: the last pod starts after 6 s; all end after 100 s, with Dovetail after `makespan`.

    All jobs end together, so the mean job time is the makespan.
    """
    workload = generate(QUICK, seed=seed)
    started = np.arange(len(workload.tasks)) * 0.05
    node = np.arange(len(workload.tasks)) % len(workload.machines)
    stock, dovetail = (Times(started, np.full_like(started, end), node) for end in (100.0, makespan))
    runs = [
        RunOutcome(contender, times, "v1.36.3", Load(cores=2, own=1.6, others=0.1))
        for contender, times in ((STOCK, stock), (DOVETAIL, dovetail))
    ]
    return compare(workload, *runs, seed=seed)


@pytest.fixture(scope="module")
def seeds():
    return Seeds([compared(4, 90.0), compared(5, 60.0), compared(6, 80.0)])  # 10, 40 and 20 % less


def test_the_rows_are_the_medians_of_percent_less_and_their_notes_name_each_seed(seeds):
    rows = {row["id"]: row for row in seeds.as_json()["rows"]}
    for name in ("demo.makespan", "demo.mean_job_time"):
        assert rows[name]["ours"] == 20.0
        assert "4: 10, 5: 40, 6: 20;" in rows[name]["note"]
    assert rows["makespan_s.dovetail"]["ours"] == 80.0  # of the seed that is shown


def test_the_median_seed_is_shown(seeds):
    assert seeds.shown.seed == 6
    assert "(seed 6)" in seeds.shown.about


def test_of_an_even_number_the_median_is_between_the_two_and_the_lesser_is_shown():
    two = Seeds([compared(1, 60.0), compared(2, 80.0)])  # 40 and 20 % less
    assert two.gains[0].median == 30.0
    assert two.shown.seed == 2


def test_the_table_of_seeds_fits_eighty_columns_and_ends_with_median_and_range(seeds):
    console = Console(width=80, file=io.StringIO(), highlight=False)
    seeds.print(console)
    lines = [line for line in console.file.getvalue().splitlines() if line.strip()]
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[-6:]] == ["4", "5", "6", "median", "range,", "The"]
    assert lines[-3].split() == ["median", "20", "%", "20", "%"]
    assert lines[-2].split() == ["range,", "%", "10", "to", "40", "10", "to", "40"]


def test_the_report_has_the_seeds_only_where_there_are_several(seeds, tmp_path):
    path = tmp_path / "demo.html"
    seeds.write_report(path)
    assert "The median seed, 6:" in path.read_text()
    Seeds(seeds.comparisons[:1]).write_report(path)
    assert "The median seed" not in path.read_text()


def test_queues_and_several_seeds_do_not_go_together():
    refused = CliRunner().invoke(demo, ["--queues", "--seeds", "2"])
    assert refused.exit_code == 2
    assert "--queues shows one seed; leave one of the two out" in refused.output

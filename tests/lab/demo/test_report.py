"""What people see of the demo: rows, JSON, the table, the page and the picture."""

import io
import json
import re

import numpy as np
import pytest
from rich.console import Console

from lab.controlplane.processes import Load
from lab.demo import report
from lab.demo.comparison import compare
from lab.demo.room import Times
from lab.demo.rows import FigureRow, as_json
from lab.demo.run import DOVETAIL, STOCK, RunOutcome
from lab.demo.seeds import Seeds
from lab.demo.workload import QUICK, DemoSize, generate

WORKLOAD = generate(QUICK, seed=1)
QUIET, CROWDED = Load(cores=2, own=1.6, others=0.1), Load(cores=2, own=0.9, others=1.1)


def outcome(contender, stretch, load=QUIET):
    """Return a made-up run: pods start one after the other, round the nodes, and take `stretch` times their work."""
    started = np.arange(len(WORKLOAD.tasks)) * 0.05
    node = np.arange(len(WORKLOAD.tasks)) % len(WORKLOAD.machines)
    return RunOutcome(contender, Times(started, started + WORKLOAD.work * stretch, node), "v1.36.3", load)


@pytest.fixture(scope="module")
def found():
    return compare(WORKLOAD, outcome(STOCK, 1.5), outcome(DOVETAIL, 1.0), seed=1)


def test_a_row_shows_both_values_with_their_unit_and_the_change():
    row = FigureRow("makespan_s", "makespan", "s", 50.0, 40.0)
    assert row.shown() == ("makespan", "50.0 s", "40.0 s", "-20 %")


def test_a_demo_of_so_few_pods_that_nobody_waits_says_nothing_of_that_time():
    few = generate(DemoSize(nodes=2, pods=2, work_seconds=(1.0, 3.0)), seed=1)
    run = RunOutcome(STOCK, Times(np.zeros(2), few.work, np.arange(2)), "v1.36.3", QUIET)
    found = compare(few, run, run, seed=1)
    shown = {row.id: row.shown()[1:] for row in found.rows}
    assert shown["running_mean"] == shown["share_percent.research"] == shown["used_percent.cpu"] == ("", "", "")
    assert "NaN" not in json.dumps(as_json(found.rows))


def test_a_change_from_nothing_is_not_shown():
    assert FigureRow("over", "over-allocated", "%", 0.0, 0.0).shown()[3] == ""


def test_rows_tell_the_slow_down_of_each_run(found):
    row = next(row for row in found.rows if row.id == "slowdown_mean")
    assert (row.stock, row.dovetail) == (pytest.approx(1.5), pytest.approx(1.0))
    assert any("1.50 times" in note for note in found.notes)


def test_that_other_programs_took_much_of_the_machine_is_said_above_all_else(found):
    crowded = compare(WORKLOAD, outcome(STOCK, 1.5), outcome(DOVETAIL, 1.0, CROWDED), seed=1)
    assert crowded.notes[0].startswith("Other programs kept 1.1 of this machine's 2 cores busy meanwhile")
    assert crowded.notes[1:] == found.notes


def test_json_has_a_row_for_each_run_and_the_papers_figures_where_there_are_any(found):
    rows = json.loads(json.dumps(as_json(found.rows)))["rows"]
    assert all(set(row) == {"id", "ours", "paper", "unit", "note"} for row in rows)
    by_id = {row["id"]: row for row in rows}
    assert len(by_id) == len(rows)
    assert {"makespan_s.stock", "makespan_s.dovetail", "used_percent.cpu.dovetail"} <= set(by_id)
    assert by_id["makespan_s.stock"]["paper"] is None
    assert by_id["makespan_s.change"]["paper"] == -29


def test_the_table_fits_a_hundred_columns(found):
    console = Console(width=100, file=io.StringIO(), highlight=False)
    report.table(console, found.rows)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(1 for line in lines if line.strip()) == len(found.rows) + 2  # heads, a rule, and no row wraps


def test_the_page_has_the_plots_and_loads_nothing(found, tmp_path):
    path = tmp_path / "new" / "demo.html"
    Seeds([found]).write_report(path)
    page = path.read_text()
    assert page.count("<svg") == page.count("</svg>") == 5
    assert not re.search(r"<(script|link|img|iframe|object|image)\b|@import|<!ENTITY|<\?xml", page)
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)|url\((?!["']?#)""", page)
    assert page.count("<!DOCTYPE") == 1
    assert page.count("<tr>") == len(found.rows) + 1


@pytest.mark.parametrize(("name", "begin"), [("demo.png", b"\x89PNG"), ("demo.svg", b"<?xml")])
def test_the_picture_is_what_its_name_says(found, tmp_path, name, begin):
    found.write_picture(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begin)

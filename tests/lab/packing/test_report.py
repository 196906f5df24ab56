"""`dovetail packing report` says it in words, and as JSON."""

import html
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

from extender.cluster.recording.lines import Begin, Checkpoint, NodeLine, PodLine, encoded
from lab.packing import figures
from lab.packing.commands import packing
from lab.packing.reporting import Filled, PackingReport, Under, Used

GIB = 2.0**30


@pytest.fixture
def recording(tmp_path):
    """Ten nodes of 4 cores and 8 GiB; 20 pods of 1 core and 1 GiB, two on each; one that no node can take."""
    nodes = [NodeLine(1.0, f"n{row}", {"cpu": 4000.0, "memory": 8 * GIB, "pods": 110.0}) for row in range(10)]
    pods = [_pod(f"p{row:02}", "web", 1000.0, GIB, f"n{row % 10}") for row in range(20)]
    pods += [_pod("huge", "huge", 9000.0, GIB, None), _pod("lost", "web", 1000.0, GIB, "n99")]
    file = tmp_path / "recording"
    file.write_bytes(b"".join(map(encoded, [Begin(1.0), Checkpoint(2.0, nodes, pods)])))
    return file


def _pod(name, job, cpu, memory, node):
    demand = {"cpu": cpu, "memory": memory, "pods": 1.0}
    return PodLine(name, "shop", name, job, "shop", demand, 1.0, node=node)


def run(*arguments):
    return CliRunner().invoke(packing, ["report", *map(str, arguments)])


def test_the_report_says_how_many_nodes_would_do_and_how_much_more_would_fit(recording):
    result = run(recording, "--compare", "stock,dovetail")
    assert result.exit_code == 0, result.output
    assert "10 nodes, 20 tasks in 1 class." in result.stdout
    assert "Allocated: CPU 50.0 %, memory 25.0 %." in result.stdout
    assert "This workload fits on 5 of your 10 nodes (90th percentile of 11 trials, range 5 to 5)." in result.stdout
    assert "No placement needs fewer than 5 on the same draws." in result.stdout
    assert "More tasks: the workload can grow to 2.00 times itself (CPU 100 %, memory 50 %)." in result.stdout
    assert "dovetail needs as many nodes as stock: 5." in result.stdout
    assert "however empty, or are too many to keep apart: shop/huge (1)." in result.stdout
    assert "Left out: 1 pods on nodes that the checkpoint does not have, the first: shop/lost on n99." in result.stdout
    assert (
        "Not modelled: which devices a pod gets: an extended resource counts as whole devices, all alike;"
        in result.stdout
    )


def test_the_report_as_json_has_the_same_figures(recording):
    result = run(recording, "--json", "--trials", "3")
    found = json.loads(result.stdout)
    [under] = found["policies"]
    assert (found["machines"], found["tasks"], found["misfits"]) == (10, 20, {"shop/huge": 1})
    assert under["policy"] == "dovetail"
    assert under["compacted"]["sizes"] == [5, 5, 5]
    assert under["compacted"]["lower_bound"] == 5
    assert {(grown["way"], grown["classes"]): grown["factor"] for grown in under["inflated"]} == {
        ("horizontal", "all"): 2.0,
        ("horizontal", "conforming"): 2.0,
        ("vertical", "all"): 2.0,
        ("vertical", "conforming"): 2.0,
    }
    # 10 % of a node: 0.4 cores and 0.8 GiB. Each node has 2 cores left: five units, and 6 GiB would take seven.
    assert found["now"]["units"] == 50
    assert found["now"]["after"] == {"cpu": 100.0, "memory": 75.0}


def test_the_json_is_all_that_is_written_where_standard_error_is_closed(recording):
    command = f"exec {sys.executable} -m extender packing report {recording} --json --trials 1 2>&-"
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, check=True)
    assert json.loads(done.stdout)["machines"] == 10


def test_memory_that_strands_cpu_is_said_with_its_nodes(tmp_path):
    nodes = [NodeLine(1.0, name, {"cpu": 4000.0, "memory": 8 * GIB}) for name in ("n0", "n1")]
    file = tmp_path / "recording"
    lines = [Begin(1.0), Checkpoint(2.0, nodes, [_pod("p", "web", 1000.0, 8 * GIB, "n1")])]
    file.write_bytes(b"".join(map(encoded, lines)))
    assert "Memory is what strands CPU on 1 node: n1." in run(file).stdout


def test_the_unit_that_fills_holes_is_never_said_to_be_nothing(tmp_path):
    # A tenth of 4 cores and of 8 KiB: traces give memory in units of their own.
    file = tmp_path / "recording"
    nodes = [NodeLine(1.0, "n0", {"cpu": 4000.0, "memory": 8192.0})]
    lines = [Begin(1.0), Checkpoint(2.0, nodes, [_pod("p", "web", 1000.0, 1024.0, "n0")])]
    file.write_bytes(b"".join(map(encoded, lines)))
    assert " units of 0.4 cores and 819 B: " in run(file).stdout


def test_nodes_that_could_be_drained_are_said_and_what_stands_in_the_way_of_others(tmp_path):
    nodes = [NodeLine(1.0, name, {"cpu": 4000.0, "memory": 8 * GIB}) for name in ("n0", "n1")]
    file = tmp_path / "recording"
    file.write_bytes(
        b"".join(map(encoded, [Begin(1.0), Checkpoint(2.0, nodes, [_pod("p", "web", 1000.0, GIB, "n1")])]))
    )
    output = run(file, "--trials", "1").stdout
    assert "One node could be drained now (no pod would have to go from 1): n0." in output
    assert "1 cannot be, as nobody would make its pod again: it has no controller; the first: n1: shop/p." in output


def test_a_workload_that_is_too_large_is_said_to_need_more_such_nodes(tmp_path):
    nodes = [NodeLine(1.0, "n0", {"cpu": 4000.0, "memory": 8 * GIB})]
    file = tmp_path / "recording"
    pods = [_pod(f"p{row}", "web", 1000.0, GIB, None) for row in range(9)]
    file.write_bytes(b"".join(map(encoded, [Begin(1.0), Checkpoint(2.0, nodes, pods)])))
    output = run(file, "--tau", "0", "--trials", "1").stdout
    assert "This workload does not fit on your 1 nodes; it fits on 3 such nodes." in output
    assert "All nodes together (1) have no place for 5 tasks." in output
    assert "times itself" not in output


@pytest.mark.parametrize("option", ["--tau", "--unit"])
def test_what_is_no_number_is_refused(recording, option):
    refused = run(recording, option, "nan")
    assert refused.exit_code == 2
    assert f"Invalid value for '{option}': 'nan' is not a finite number." in refused.output


def test_an_unknown_policy_is_refused_with_those_that_are_known(recording):
    result = run(recording, "--compare", "stock,magic")
    assert result.exit_code == 2
    assert "'magic'; accepted: first-fit, best-fit, most-allocated, stock, fgd, dovetail" in result.output


@pytest.mark.parametrize(
    ("of", "percent", "unit", "units"),
    [("median", "50", 2000.0, 10), ("node", "25", 1000.0, 20), ("tasks", "90", 1000.0, 20)],
)
def test_the_unit_is_a_part_of_a_node_or_a_percentile_of_the_tasks(recording, of, percent, unit, units):
    # Each node has 2 cores and 6 GiB left. Half a node: 2 cores and 4 GiB, one; a quarter: 1 and 2, two; a task: two.
    found = json.loads(run(recording, "--json", "--trials=1", f"--unit={percent}", f"--unit-of={of}").stdout)
    assert (found["now"]["unit"]["cpu"], found["now"]["units"]) == (unit, units)


def test_a_report_is_one_page_with_plots_and_the_words(recording, tmp_path):
    file = tmp_path / "made" / "report.html"
    result = run(recording, "--trials", "2", "--compare", "stock,dovetail", "--report", str(file))
    page = file.read_text()
    assert result.exit_code == 0
    assert page.count("<svg") == 3
    assert "http" not in page.replace("http://www.w3.org/", "")  # it loads nothing
    for said in ("Nodes that are enough", "What is allocated", "How far the workload can grow"):
        assert f"<h2>{said}</h2>" in page
    assert all(html.escape(line.strip()) in page for line in result.stdout.splitlines() if line)


@pytest.mark.parametrize(("policies", "turned"), [(1, 0.0), (6, 20.0)])
def test_the_names_of_many_policies_are_turned_so_that_none_covers_another(policies, turned):
    used = Used(50.0, 50.0)
    holes = Filled({"cpu": 1.0, "memory": 1.0}, 0, used, used, [], [])
    under = [Under(f"most-allocated-{row}", "arrival", 0, None, holes, [], []) for row in range(policies)]
    report = PackingReport("s", 1, 1, 1, 0.0, 1, 0, {}, {}, holes, None, under, [], [])
    axes = Figure().subplots(1, 2)
    figures._draw_allocated(axes, report)
    assert {label.get_rotation() for plot in axes for label in plot.get_xticklabels()} == {turned}


def test_where_a_report_cannot_be_written_nothing_is_measured(recording):
    result = run(recording, "--report", "/proc/no/report.html")
    assert result.exit_code == 2
    assert "/proc/no" in result.output

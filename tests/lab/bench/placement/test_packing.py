import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from extender.cluster.model import Node, Pod
from extender.errors import TraceError
from extender.verdict import Placement
from lab.bench import commands
from lab.bench.commands import bench
from lab.bench.placement.packing import MeasuredWorkload, measure, replay
from lab.bench.placement.rankings import rankings
from lab.bench.placement.traces import GPU, PodShape, TraceCluster, openb_variants
from lab.report.rows import Report, Row

TRACES = Path(__file__).parents[4].parent / "shared" / "traces"
RANKINGS = {ranking.name: ranking for ranking in rankings(Placement())}
every_ranking = pytest.mark.parametrize("ranking", RANKINGS.values(), ids=RANKINGS.keys())


def scene(capacities, tasks, *, resource="cpu", asked=(100,), gpus=0):
    nodes = tuple(Node(f"node-{number}", capacity) for number, capacity in enumerate(capacities))
    workload = TraceCluster("made", nodes, tuple(tasks), {node.name: gpus for node in nodes})
    return MeasuredWorkload(workload, resource, f"{resource}_allocated", asked, "made up")


def task(gpus=0, gpu_milli=0, wave=1, **demand):
    return PodShape(Pod("u", "trace", "pod", dict(demand)), gpus, gpu_milli, wave)


@every_ranking
def test_pods_that_fit_evenly_fill_the_cluster(ranking):
    # Four nodes of 4 CPUs, pods of 1: sixteen fill them, whoever ranks.
    made = scene([{"cpu": 4.0, "memory": 4.0}] * 4, [task(cpu=1.0, memory=1.0)])
    assert replay(made, ranking, seed=0) == pytest.approx([1.0])


@every_ranking
def test_what_does_not_fit_is_not_allocated(ranking):
    # Two nodes of 3, pods of 2: one each. When 100 % (three pods) have asked, 4 of 6 are allocated; then no more.
    made = scene([{"cpu": 3.0, "memory": 9.0}] * 2, [task(cpu=2.0, memory=1.0)], asked=(100, 200))
    assert replay(made, ranking, seed=0) == pytest.approx([4 / 6, 4 / 6])


@every_ranking
def test_who_asks_for_less_still_fits_where_others_were_refused(ranking):
    # Two nodes of 3: pods of 2 fit once on each at most, and pods of 1 fill what is left.
    tasks = [task(cpu=2.0, memory=1.0), task(cpu=1.0, memory=1.0)]
    made = scene([{"cpu": 3.0, "memory": 9.0}] * 2, tasks, asked=(1_000,))
    assert replay(made, ranking, seed=0) == pytest.approx([1.0])


def test_a_pod_needs_its_part_of_a_gpu_on_one_gpu():
    # Two GPUs, pods of 0.6: one on each. A third would fit into 2 x 0.4 only if one GPU's part could be split.
    made = scene(
        [{"cpu": 9.0, "memory": 9.0, GPU: 2000.0}],
        [task(1, 600, cpu=1.0, memory=1.0, **{GPU: 600.0})],
        resource=GPU,
        gpus=2,
    )
    assert replay(made, RANKINGS["random"], seed=0) == pytest.approx([0.6])


def test_parts_of_gpus_share_one_so_that_whole_ones_stay():
    # A wave of two halves: both on one GPU; 50 % held. Spread out, no pod of a whole GPU would fit afterwards.
    halves = task(1, 500, wave=2, cpu=1.0, memory=1.0, **{GPU: 500.0})
    made = scene([{"cpu": 9.0, "memory": 9.0, GPU: 2000.0}], [halves], resource=GPU, gpus=2, asked=(50, 100))
    assert replay(made, RANKINGS["cosine"], seed=0) == pytest.approx([0.5, 1.0])


def test_a_seed_replays_to_the_same_figures_and_another_does_not():
    draw = np.random.default_rng(0)
    tasks = [task(cpu=float(c), memory=float(m)) for c, m in draw.integers(1, 9, (20, 2))]
    made = scene([{"cpu": 16.0, "memory": 16.0}] * 8, tasks)
    first, again, other = (replay(made, RANKINGS["cosine"], seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_levels_cost_nothing_against_the_exact_order():
    draw = np.random.default_rng(0)
    tasks = [task(cpu=float(c), memory=float(m)) for c, m in draw.integers(1, 9, (20, 2))]
    made = scene([{"cpu": 16.0, "memory": 32.0}] * 8 + [{"cpu": 32.0, "memory": 16.0}] * 8, tasks, asked=(100, 130))
    served, exact = (replay(made, RANKINGS[name], 0) for name in ("cosine", "cosine-without-levels"))
    np.testing.assert_array_equal(served, exact)


def test_a_workload_that_asks_for_nothing_is_refused():
    made = scene([{"cpu": 3.0, "memory": 9.0}], [task(memory=1.0)])
    with pytest.raises(TraceError, match="made: no task asks for cpu"):
        replay(made, RANKINGS["cosine"], seed=0)


def test_rows_give_mean_range_and_seeds():
    made = scene([{"cpu": 3.0, "memory": 9.0}] * 2, [task(cpu=2.0, memory=1.0)])
    report = measure([made], [RANKINGS["cosine"]], [0, 1], lambda: None)
    assert report.rows[0].id == "placement.made.cosine.cpu_allocated.100"
    assert report.rows[0].ours == 66.67
    assert report.rows[0].unit == "%"
    assert report.rows[0].note.startswith("66.67 to 66.67, seeds 0 to 1; ")


def test_without_traces_the_command_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(bench, ["placement"])
    assert isinstance(result.exception, TraceError)
    assert "say with --traces which folder holds openb_gpu2023/openb_node_list_gpu_node.csv" in str(result.exception)


def test_a_folder_of_traces_that_is_not_there_is_refused_before_anything_runs(tmp_path):
    result = CliRunner().invoke(bench, ["placement", "--traces", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "Directory" in result.output
    assert "does not exist" in result.output


def test_without_traces_all_benchmarks_go_on_and_name_what_was_skipped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # All others have tests of their own.
    monkeypatch.setattr(commands, "_programs_if_any", lambda: None)
    others = ("extender", "simulator", "loops", "order", "packing")
    for name in others:
        monkeypatch.setattr(commands, f"_{name}", lambda _, name=name: Report([Row(name, 1.0, "")]))
    result = CliRunner().invoke(bench, ["--quick", "--json"])
    assert "placement: skipped: no workload traces at ../shared/traces" in result.stderr
    assert [row["id"] for row in json.loads(result.stdout)["rows"]] == list(others)


def test_an_unknown_ranking_is_refused_with_those_that_are_known(tmp_path):
    result = CliRunner().invoke(bench, ["placement", "--traces", str(tmp_path), "--ranking", "cosin"])
    assert result.exit_code == 2
    assert "'cosin'; accepted: dot, cosine," in result.stderr


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.skipif(not TRACES.is_dir(), reason="needs the workload traces in ../shared/traces")
def test_the_quick_form_measures_every_ranking_on_both_traces():
    result = CliRunner().invoke(bench, ["placement", "--quick", "--json", "--traces", str(TRACES)])
    assert result.exception is None
    rows = {row["id"]: row for row in json.loads(result.stdout)["rows"]}
    variants = openb_variants(TRACES)
    others = len(variants) - 1
    assert {"default", "gpuspec25", "multigpu30", "cpu100", "gpushare60"} <= set(variants)
    shares = {name: row for name, row in rows.items() if row["unit"] == "%"}
    # All rankings on the first list of pods, and (but that for GPUs) on the equal machines; five on each other list.
    assert len(shares) == len(RANKINGS) * 2 + (len(RANKINGS) - 1) * 3 + others * 5 * 2 + len(variants) * 2 + 3 * 2
    assert len(rows) - len(shares) == len(variants) * 2
    assert all(set(row) == {"id", "ours", "paper", "unit", "note"} for row in rows.values())
    assert all(70 < row["ours"] <= 100 for row in shares.values())
    assert rows["placement.default.100"]["paper"] == 95.23
    above = rows["placement.multigpu30.130.vs_fgd"]["ours"]
    assert above == pytest.approx(rows["placement.multigpu30.130"]["ours"] - 96.46, abs=0.006)
    gpus = {name: rows[f"placement.default.{name}.gpu_allocated.130"]["ours"] for name in ("cosine", "random")}
    assert gpus["cosine"] > gpus["random"] + 3
    assert rows["choice.quality.all.gpu_allocated.130"]["ours"] > gpus["random"] + 3
    # Of 61 nodes kube-scheduler looks at 5 that fit: a choice among them is one, but a poorer one.
    assert rows["choice.quality.5.gpu_allocated.130"]["ours"] > gpus["random"]

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from extender.errors import DovetailError, TraceError
from lab.sim.workloads.parameters import Parameters
from lab.sim.workloads.specs import machines
from lab.sim.workloads.swim import BLOCK_BYTES, CORRELATION, VARIATIONS, swim
from lab.sim.workloads.workload import BLOCKS, SHUFFLE

HEADER = "job\tsubmit_s\tgap_s\tmap_input_bytes\tshuffle_bytes\treduce_output_bytes\n"
TRACES = Path(__file__).parents[4].parent / "shared" / "traces" / "swim_facebook"
CPU, MEMORY, WRITE = 0, 1, 3


def trace(tmp_path, *rows):
    path = tmp_path / "fb.tsv"
    path.write_text(HEADER + "".join("\t".join(str(field) for field in row) + "\n" for row in rows))
    return path


def only(path, **options):
    return swim(path, 1, **options).jobs[0]


def test_there_is_a_map_per_block_and_a_reduce_per_gigabyte_of_the_shuffle(tmp_path):
    path = trace(tmp_path, ("a", 5, 5, 3 * BLOCK_BYTES + 1, 2_000_000_001, 10))
    maps, reduces = only(path).stages
    assert (maps.tasks, maps.source, maps.parents) == (4, BLOCKS, ())
    assert (reduces.tasks, reduces.source, reduces.parents) == (3, SHUFFLE, (0,))


def test_a_job_without_a_shuffle_has_maps_only_that_write_its_output(tmp_path):
    (maps,) = only(trace(tmp_path, ("a", 5, 5, 2 * BLOCK_BYTES, 0, 5_000_000))).stages
    assert maps.tasks == 2
    assert maps.demand[WRITE] * maps.duration == pytest.approx(2_500_000, rel=1e-3)


def test_a_job_without_input_has_one_map_that_reads_nothing(tmp_path):
    (maps,) = only(trace(tmp_path, ("a", 5, 5, 0, 0, 1000))).stages
    assert (maps.tasks, maps.reading) == (1, 0)


def test_no_task_writes_more_than_a_gigabyte(tmp_path):
    # 410 kB become 2.5 GB: three maps instead of one; a shuffle of 5 bytes becomes 1.5 GB: two reduces
    (maps,) = only(trace(tmp_path, ("a", 5, 5, 410_483, 0, 2_513_586_060))).stages
    assert maps.tasks == 3
    _, reduces = only(trace(tmp_path, ("a", 5, 5, 410_483, 5, 1_500_000_000))).stages
    assert reduces.tasks == 2


def test_rate_times_duration_gives_the_bytes_of_the_trace_back(tmp_path):
    path = trace(tmp_path, ("a", 5, 5, 40 * BLOCK_BYTES, 7_500_000_000, 3_000_000_000))
    maps, reduces = only(path).stages
    assert maps.reading * maps.durations.sum() == pytest.approx(40 * BLOCK_BYTES, rel=1e-4)
    assert maps.demand[WRITE] * maps.durations.sum() == pytest.approx(7_500_000_000, rel=1e-4)
    assert reduces.reading * reduces.durations.sum() == pytest.approx(7_500_000_000, rel=1e-4)
    assert reduces.demand[WRITE] * reduces.durations.sum() == pytest.approx(3_000_000_000, rel=1e-4)


def test_a_task_with_hardly_any_bytes_takes_as_long_as_a_task_must(tmp_path):
    (maps,) = only(trace(tmp_path, ("a", 5, 5, 1000, 0, 1000))).stages
    assert (maps.tasks, maps.duration, maps.reading) == (1, 5.0, 200.0)


@pytest.fixture(scope="module")
def diverse(tmp_path_factory):
    """Return the stages of 2,000 jobs of one full block and one full reduce each."""
    rows = [(f"j{number}", number, 1, BLOCK_BYTES, 1_000_000_000, 100) for number in range(2000)]
    workload = swim(trace(tmp_path_factory.mktemp("swim"), *rows), 3)
    return [job.stages[0] for job in workload.jobs], [job.stages[1] for job in workload.jobs]


def test_demands_have_their_medians_and_are_about_as_skewed_as_published(diverse):
    demand = np.array([stage.demand for stages in diverse for stage in stages])
    assert np.median(demand[:, CPU]) == pytest.approx(500, rel=0.08)
    assert np.median(demand[:, MEMORY]) == pytest.approx(1.2e9, rel=0.08)
    # cut off at 20 times the median, so somewhat less than published
    for column, published in zip((CPU, MEMORY), VARIATIONS, strict=False):
        variation = demand[:, column].std() / demand[:, column].mean()
        assert 0.85 * published < variation < 1.05 * published
    for column in (CPU, MEMORY):
        median = np.median(demand[:, column])
        assert 1 / 8.5 < demand[:, column].min() / median < 1 / 6.5
        assert 17 < demand[:, column].max() / median < 23


def test_cpu_and_memory_go_together_as_published(diverse):
    demand = np.log(np.array([stage.demand[:2] for stages in diverse for stage in stages]))
    assert np.corrcoef(demand.T)[0, 1] == pytest.approx(CORRELATION[0, 1], abs=0.05)


def test_no_task_takes_more_than_a_machine_even_if_all_that_it_reads_is_remote(diverse):
    capacity = machines("facebook").capacity[0]
    for stages in diverse:
        for stage in stages:
            taken = stage.demand.copy()
            taken[[2, 4, 5]] = stage.reading
            assert (taken <= capacity).all()


def test_jobs_larger_than_the_table_allows_are_left_out(tmp_path):
    path = trace(tmp_path, ("small", 1, 1, 1000, 0, 0), ("large", 2, 1, 11 * BLOCK_BYTES, 0, 0))
    usual = Parameters()
    few = replace(usual, facebook=replace(usual.facebook, largest=10))
    assert [job.name for job in swim(path, 1, parameters=few).jobs] == ["small"]
    assert [job.name for job in swim(path, 1).jobs] == ["small", "large"]


def test_a_number_of_jobs_is_one_piece_of_the_trace_that_the_seed_chooses(tmp_path):
    path = trace(tmp_path, *[(f"j{number:02}", 10 * number, 10, 1000, 0, 0) for number in range(20)])
    pieces = {tuple(job.name for job in swim(path, seed, jobs=3, arrivals="trace").jobs) for seed in range(20)}
    assert len(pieces) > 5
    assert all(int(third[1:]) - int(first[1:]) == 2 for first, _, third in pieces)
    assert [job.arrives_at for job in swim(path, 1, jobs=3, arrivals="trace").jobs] == [0, 10, 20]


def test_the_same_seed_gives_the_same_jobs(tmp_path):
    path = trace(tmp_path, ("a", 5, 5, 40 * BLOCK_BYTES, 7_500_000_000, 3_000_000_000))
    first, second = only(path), only(path)
    for one, other in zip(first.stages, second.stages, strict=True):
        assert one.demand.tobytes() + one.durations.tobytes() == other.demand.tobytes() + other.durations.tobytes()
    assert swim(path, 2).jobs[0].stages[0].demand.tobytes() != first.stages[0].demand.tobytes()


def test_a_malformed_line_is_named_by_file_line_and_column(tmp_path):
    path = trace(tmp_path, ("a", 5, 5, 1, 2, 3), ("b", 6, 1, "many", 2, 3))
    with pytest.raises(TraceError) as raised:
        swim(path, 1)
    assert str(raised.value) == (
        f"{path}, line 3, column 'map_input_bytes': 'many'; accepted: a whole number, 0 or more"
    )


def test_a_trace_that_is_cut_off_is_named_by_file_line_and_column(tmp_path):
    path = trace(tmp_path, ("a", 5, 5, 1, 2, 3), ("b", 6, 1, 99))
    with pytest.raises(TraceError, match=r"fb.tsv, line 3, column 'shuffle_bytes': missing"):
        swim(path, 1)


def test_other_arrivals_are_refused(tmp_path):
    with pytest.raises(DovetailError, match="accepted: paced, trace, start"):
        swim(trace(tmp_path, ("a", 5, 5, 1, 2, 3)), 1, arrivals="never")


@pytest.mark.traces
@pytest.mark.skipif(not TRACES.is_dir(), reason="needs the workload traces in ../shared/traces")
def test_a_day_of_facebook_becomes_jobs_of_the_published_lengths():
    workload = swim(TRACES / "fb2009_0.tsv", 1)
    assert len(workload.jobs) > 5880
    full = [
        stage
        for job in workload.jobs
        for stage in job.stages
        if stage.name == "map" and stage.reading * stage.duration > 0.9 * BLOCK_BYTES
    ]
    # Delay Scheduling, 2: the median map takes 19 s; ours is between that and what table 3's busy disks ask for
    assert 7 < np.median([stage.duration for stage in full]) < 19

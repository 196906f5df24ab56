import numpy as np
import pytest

from extender.errors import TraceError
from lab.errors import SpecError
from lab.sim.workloads.specs import MACHINES, WORKLOADS, machines, workload

GIB = 2.0**30
SWIM = "job\tsubmit_s\tgap_s\tmap_input_bytes\tshuffle_bytes\treduce_output_bytes\n"
ALIBABA = "job_id,task_id,submit_s,inst_duration_s,cpu_cores,mem_norm,instances\n"
DAGS = "job,stage,parents,instances,start_s,inst_duration_s,cpu_req_pct,mem_req\n"


@pytest.fixture
def traces(tmp_path):
    """Write three traces of 600 jobs each."""
    files = {
        "swim_facebook/fb.tsv": SWIM + "".join(f"j{number}\t{number}\t1\t1000\t0\t0\n" for number in range(600)),
        "alibaba2017_batch/jobs.csv": ALIBABA + "".join(f"{number},1,{number},10,1,0.1,1\n" for number in range(600)),
        "alibaba2018_dag/jobs3690_req_usage.csv": DAGS
        + "".join(f"{number},1,,1,{number},10,100,0.1\n" for number in range(600)),
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(content)
    return tmp_path


@pytest.mark.parametrize(
    ("spec", "name", "jobs"),
    [
        ("suite:jobs=2", "suite", 2),
        ("swim:fb,jobs=7", "swim:fb", 7),
        ("swim:fb", "swim:fb", 500),
        ("swim:fb,jobs=all", "swim:fb", 600),
        ("alibaba2017:jobs=7", "alibaba2017", 7),
        ("alibaba2018", "alibaba2018", 200),
        ("dags:jobs=3", "dags", 3),
        ("dags", "dags", 40),
    ],
)
def test_a_spec_names_a_workload_and_how_many_jobs(traces, spec, name, jobs):
    found = workload(spec, 1, traces)
    assert (found.name, len(found.jobs)) == (name, jobs)


def test_arrivals_and_load_are_options(traces):
    start = workload("swim:fb,jobs=4,arrivals=start", 1, traces)
    assert [job.arrives_at for job in start.jobs] == [0, 0, 0, 0]
    slow, fast = (workload(f"alibaba2017:jobs=4,load={load}", 1, traces) for load in (1, 2))
    # 4 tasks of one core and 10 seconds: 40 core seconds
    assert (slow.jobs[-1].arrives_at, fast.jobs[-1].arrives_at) == pytest.approx((40, 20))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "'' is unknown; accepted: suite"),
        ("suit", "'suit' is unknown; accepted: suite[:jobs=N], swim:TRACE"),
        ("suite:job=2", "'job=2' is unknown; accepted: jobs=..."),
        ("suite:jobs=0", "jobs=0; accepted: a whole number, 1 or more"),
        ("suite:jobs=all", "jobs=all; accepted: a whole number, 1 or more"),
        ("suite:jobs=2,jobs=3", "jobs stands twice; accepted: once"),
        ("suite:jobs=2,", "'' is unknown; accepted: jobs=..."),
        ("swim", "swim needs the name of a trace first"),
        ("swim:jobs=2", "swim needs the name of a trace first"),
        ("swim:fb,arrivals=late", "arrivals=late; accepted: paced, trace, start"),
        ("alibaba2018:load=much", "load=much; accepted: a number of cores above 0"),
        ("dags:arrivals=trace", "arrivals=trace; accepted: paced, start"),
        ("alibaba2018:load=0", "load=0; accepted: a number of cores above 0"),
    ],
)
def test_a_wrong_workload_is_refused_with_the_wrong_part_and_what_is_accepted(traces, spec, says):
    with pytest.raises(SpecError) as raised:
        workload(spec, 1, traces)
    assert f"workload {spec!r}: " in str(raised.value)
    assert says in str(raised.value)


def test_a_trace_that_does_not_exist_is_named(traces):
    with pytest.raises(TraceError, match=r"fb2031.tsv does not exist; say where the traces are with --traces"):
        workload("swim:fb2031", 1, traces)


@pytest.mark.parametrize(
    ("spec", "count", "row"),
    [
        ("tetris", 250, (32_000, 96 * GIB, 1.6e9, 1.6e9, 1e9, 1e9)),
        ("tetris:40", 40, (32_000, 96 * GIB, 1.6e9, 1.6e9, 1e9, 1e9)),
        ("facebook", 100, (12_000, 28 * GIB, 200e6, 200e6, 117.5e6, 117.5e6)),
        ("alibaba2017:3", 3, (64_000, 256 * GIB, 1e9, 1e9, 1.25e9, 1.25e9)),
        ("alibaba2018", 10, (96_000, 512 * GIB, 1e9, 1e9, 1.25e9, 1.25e9)),
        ("dags", 20, (16_000, 128 * GIB, 1e9, 1e9, 1.25e9, 1.25e9)),
        ("8x1.5c4g,disk=800M,net=1G", 8, (1500, 4 * GIB, 8e8, 8e8, 1e9, 1e9)),
    ],
)
def test_a_spec_names_machines(spec, count, row):
    found = machines(spec)
    assert found.name == spec
    assert found.capacity.shape == (count, 6)
    assert (found.capacity == np.array(row)).all()


def test_facebooks_machines_have_memory_that_the_system_holds_and_links_of_which_headers_take_a_part():
    whole = machines("facebook:2").whole
    assert whole is not None
    assert (whole == np.array([12_000, 32 * GIB, 200e6, 200e6, 125e6, 125e6])).all()
    assert machines("tetris:2").whole is None


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("tetri", "'tetri' is unknown; accepted: tetris[:N], facebook[:N]"),
        ("tetris:", "'' machines; accepted: a whole number, 1 or more"),
        ("tetris:0", "'0' machines; accepted: a whole number, 1 or more"),
        ("0x1c1g,disk=1M,net=1M", "'0' machines; accepted: a whole number, 1 or more"),
        ("8x32c", "'8x32c' is unknown; accepted: tetris[:N]"),
        ("8x32c96g,net=1M", "disk is missing; needed: disk=RATE,net=RATE"),
        ("8x32c96g,disk=fast,net=1M", "disk=fast; accepted: bytes per second, as in 800M"),
        ("8x32c96g,disk=1M,gpu=1", "'gpu=1' is unknown; accepted: disk=..., net=..."),
    ],
)
def test_wrong_machines_are_refused_with_the_wrong_part_and_what_is_accepted(spec, says):
    with pytest.raises(SpecError) as raised:
        machines(spec)
    assert f"machines {spec!r}: " in str(raised.value)
    assert says in str(raised.value)


def test_the_forms_for_the_help_text_name_every_workload_and_profile():
    assert [form.partition(":")[0].partition("[")[0] for form in WORKLOADS] == [
        "suite",
        "swim",
        "alibaba2017",
        "alibaba2018",
        "dags",
        "tpch",
        "recording",
    ]
    named = [form for form in MACHINES if form[0].islower()]
    assert named[-2:] == ["recorded", "recorded-all"], "which need a recording"
    for form in named[:-2]:
        assert len(machines(form.partition("[")[0]).capacity) > 0

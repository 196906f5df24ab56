import pytest

from extender.errors import TraceError
from lab.bench.placement.traces import ALIBABA_JOBS, GPU, OPENB_NODES, OPENB_PODS, read_alibaba2017, read_openb

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\nn-1,96000,393216,8,G2\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos\np-0,12000,16384,1,460,LS\np-1,4000,1024,0,0,BE\n"
JOBS = "job_id,task_id,submit_s,inst_duration_s,cpu_cores,mem_norm,instances\n7,1,0,13.5,0.5,0.25,250\n"
GIB = 2.0**30


@pytest.fixture
def folder(tmp_path):
    """Write the three files, so that a test can spoil one of them."""
    for name, text in ((OPENB_NODES, NODES), (OPENB_PODS, PODS), (ALIBABA_JOBS, JOBS)):
        write(tmp_path / name, text)
    return tmp_path


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_openb_gives_nodes_with_their_gpus_and_pods_with_their_part_of_them(folder):
    workload = read_openb(folder)
    assert workload.nodes[1].allocatable == {"cpu": 96000, "memory": 384 * GIB, GPU: 8000}
    assert workload.gpus == {"n-0": 2, "n-1": 8}
    assert workload.tasks[0].pod.demand == {"cpu": 12000, "memory": 16 * GIB, GPU: 460}
    assert (workload.tasks[0].gpus, workload.tasks[0].gpu_milli) == (1, 460)
    assert workload.tasks[1].pod.demand == {"cpu": 4000, "memory": GIB}


def test_alibaba_gives_equal_machines_and_tasks_in_waves(folder):
    workload = read_alibaba2017(folder, machines=2)
    assert [node.allocatable["cpu"] for node in workload.nodes] == [64000, 64000]
    task = workload.tasks[0]
    assert task.pod.demand == {"cpu": 500, "memory": workload.nodes[0].allocatable["memory"] / 4}
    # 250 instances: 2.5 waves of 100
    assert (task.wave, task.weight) == (100, 2.5)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "openb_node_list_gpu_node.csv is empty"),
        (NODES.splitlines()[0] + "\n", "has a header but no lines"),
        (NODES.replace("gpu,", "gpus,"), "line 1: no column 'gpu'; found sn, cpu_milli, memory_mib, gpus, model"),
        (
            NODES[: NODES.rindex(",8")],
            "line 3, column 'gpu': missing; the line has 3 of 5 fields: is the file cut off?",
        ),
        (NODES.replace("393216", "39x"), "line 3, column 'memory_mib': '39x'; accepted: a whole number, 0 or more"),
        (NODES.replace("64000", "-1"), "line 2, column 'cpu_milli': '-1'; accepted: a whole number, 0 or more"),
        (NODES.replace(",2,", ",,"), "line 2, column 'gpu': ''; accepted: a whole number, 0 or more"),
    ],
)
def test_a_malformed_line_is_named_by_file_line_and_column(folder, text, says):
    write(folder / OPENB_NODES, text)
    with pytest.raises(TraceError) as raised:
        read_openb(folder)
    assert str(folder / OPENB_NODES) in str(raised.value)
    assert says in str(raised.value)


@pytest.mark.parametrize("number", ["nan", "inf", "-0.5", "half"])
def test_a_number_that_cannot_be_an_amount_is_refused(folder, number):
    write(folder / ALIBABA_JOBS, JOBS.replace("0.25", number))
    with pytest.raises(TraceError, match=f"line 2, column 'mem_norm': '{number}'; accepted: a number, 0 or more"):
        read_alibaba2017(folder, machines=1)


def test_a_file_that_is_not_there_is_named_with_what_to_do(folder):
    (folder / OPENB_PODS).unlink()
    with pytest.raises(TraceError, match=r"openb_pod_list_default.csv does not exist; say where .* with --traces"):
        read_openb(folder)


def test_a_file_that_is_not_text_is_named(folder):
    (folder / ALIBABA_JOBS).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TraceError, match=r"jobs.csv cannot be read"):
        read_alibaba2017(folder, machines=1)

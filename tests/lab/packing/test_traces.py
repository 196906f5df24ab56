"""Clusters of traces are read with their constraints."""

from pathlib import Path

import pytest

from extender.errors import TraceError
from lab.packing.traces import GPU, read_roadef, read_trace

TRACES = Path(__file__).parents[4] / "shared" / "traces"

OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\na,64000,1024,2,P100\nb,64000,1024,0,\n"
OPENB_PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time
late,1000,512,1,500,P100|T4,9
early,2000,256,0,0,,3
"""


def test_openb_has_gpus_in_thousandths_and_pods_that_name_models(tmp_path):
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(OPENB_NODES)
    (tmp_path / "openb_pod_list_gpuspec25.csv").write_text(OPENB_PODS)
    found = read_trace(tmp_path)
    problem, classes = found.problem, found.problem.classes
    gpu = problem.layout.columns[GPU]
    assert problem.capacity[:, gpu].tolist() == [2000.0, 0.0]
    assert classes.job == ("early", "late")  # by arrival
    assert classes.demand[:, gpu].tolist() == [0.0, 500.0]
    assert classes.masks[classes.mask].tolist() == [[True, True], [True, False]]
    assert not found.placed


def test_roadef_has_all_resources_and_services_that_keep_apart(tmp_path):
    (tmp_path / "machines.csv").write_text("machine,cap_r0,cap_r1,cap_r2\n0,10,20,30\n1,10,20,30\n")
    (tmp_path / "processes.csv").write_text(
        "process,service,initial_machine,req_r0,req_r1,req_r2\n0,7,1,1,2,3\n1,7,0,1,2,3\n2,8,1,4,4,4\n"
    )
    found = read_trace(tmp_path)
    problem, classes = found.problem, found.problem.classes
    assert classes.count.tolist() == [2, 1]
    assert classes.at_most.tolist() == [1, 1]
    assert len(set(classes.group.tolist())) == 2
    assert problem.allocated[:, 0].tolist() == [1.0, 5.0]
    assert problem.capacity[0, problem.layout.columns["roadef/r2"]] == 30.0
    part = read_roadef(tmp_path, every=2).problem  # the first machine and its one process
    assert (part.machines, part.classes.tasks) == (1, 1)


def test_a_folder_of_no_known_trace_is_named(tmp_path):
    with pytest.raises(TraceError, match=r"no trace is known .* accepted: folders with openb_node_list_gpu_node.csv"):
        read_trace(tmp_path)


@pytest.mark.traces
@pytest.mark.parametrize(
    ("name", "machines", "tasks"), [("openb_gpu2023", 1213, None), ("roadef2012_google/a2_4", 50, 1000)]
)
def test_the_traces_themselves_are_read(name, machines, tasks):
    if not (TRACES / name).is_dir():
        pytest.skip(f"no trace at {TRACES / name}")
    problem = read_trace(TRACES / name).problem
    assert problem.machines == machines
    assert problem.classes.tasks == (tasks or problem.classes.tasks) > 0

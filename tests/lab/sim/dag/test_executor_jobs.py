"""TPC-H queries as a workload: what `--workload tpch:1 --machines executors:2` makes of the trace."""

import json

import pytest

from lab.errors import SpecError
from lab.sim.engine.clock import SimulationSettings
from lab.sim.runs import Run, perform
from lab.sim.workloads import specs

SECONDS = {"fresh_durations": {"1": [5, 0]}, "first_wave": {"1": [3, 0]}, "rest_wave": {"1": [1, 0], "2": [2, 0]}}


@pytest.fixture
def traces(tmp_path):
    stages = [
        {"stage": number, "tasks": 2, "parents": parents, "seconds": SECONDS} for number, parents in ((0, []), (1, [0]))
    ]
    (tmp_path / "tpch_dags").mkdir()
    (tmp_path / "tpch_dags" / "tpch_dags.jsonl").write_text(json.dumps({"job": "q1-2g", "stages": stages}) + "\n")
    lines = ["seed,job,query,arrives_s", "1,0,q1-2g,0", "1,1,q1-2g,1.5"]
    (tmp_path / "tpch_dags" / "sequences.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_queries_of_a_sequence_wait_for_moves_and_waves(traces):
    settings = SimulationSettings(heartbeat_seconds=0.0)
    run = Run("tpch:1", "executors:1", "first-fit", 1, settings=settings, traces=traces)
    outcome = perform(run, lambda *_: None)
    # 2 s to come, 5 s fresh, 1 s; 3 s for the first of the next stage, 1 s. First fit then serves what opened first.
    assert [job.name for job in outcome.jobs] == ["0-q1-2g", "1-q1-2g"]
    first = [2 + 5 + 1, 2 + 5 + 1]
    assert outcome.tasks.ended.tolist()[1] == first[0]
    assert outcome.tasks.ended.tolist()[4:6] == [first[0] + 7, first[0] + first[1]]
    # Back to the first query, whose second stage opened at 8 s: fresh again, then to the second for its own.
    assert outcome.tasks.ended.tolist()[2:4] == [16 + 7, 16 + 8]
    assert outcome.jobs[1].seconds == 24 + 8 - 1.5


def test_a_sequence_that_is_not_there_is_named(traces):
    with pytest.raises(SpecError, match="has no sequence 9"):
        specs.workload("tpch:9", 1, traces)
    with pytest.raises(SpecError, match="'q5'; accepted: the number of a sequence, as in tpch:1"):
        specs.workload("tpch:q5", 1, traces)
    with pytest.raises(SpecError, match=r"sequences\.csv|tpch_dags\.jsonl"):
        specs.workload("tpch:1", 1, traces / "nowhere")

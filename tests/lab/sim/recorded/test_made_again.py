"""A pod that was preempted, and the one that its owner made in its place, are one task of one job."""

import msgspec
import numpy as np
import pytest

from lab.sim.recorded.made_again import in_the_end, made_in_place
from lab.sim.recorded.reading import replay_of
from tests.lab.sim.recorded.test_reading import outcome, pod, recording
from tests.service.costs import lines_of


def owned(name, created, ended, *, disrupted=None, owner="j", cpu=1000.0, outcome=None):
    created = float(created)  # as a file says it
    made = pod(name, "j", created, created, ended, "n0", owner=owner, owner_kind="Job", disrupted=disrupted)
    outcome = outcome or ("succeeded" if disrupted is None else "failed")
    return msgspec.structs.replace(made, outcome=outcome, demand=made.demand | {"cpu": cpu})


@pytest.mark.parametrize(
    ("pods", "last"),
    [
        pytest.param([owned("a", 110, 120, disrupted=119.5), owned("b", 120, 150)], [1, 1], id="made again"),
        pytest.param(
            [owned("a", 110, 120, disrupted=119), owned("b", 120, 130, disrupted=129), owned("c", 139, 150)],
            [2, 2, 2],
            id="twice",
        ),
        pytest.param(
            [*(owned(name, 110, 120, disrupted=119) for name in "ab"), owned("c", 120, 150), owned("d", 120, 160)],
            [2, 3, 2, 3],
            id="each in another's place",
        ),
        pytest.param(
            [owned("a", 110, 150, disrupted=120, outcome="deleted"), owned("b", 120, 150)], [1, 1], id="while it goes"
        ),
        pytest.param([owned("a", 110, 120, disrupted=119), owned("b", 111, 150)], [0, 1], id="was there before"),
        pytest.param([owned("a", 110.1, 111, disrupted=110.9), owned("b", 110.2, 150)], [0, 1], id="just before"),
        pytest.param([owned("a", 110.1, 120, disrupted=119.9), owned("b", 119.0, 150)], [1, 1], id="in whole seconds"),
        pytest.param(
            [owned("a", 110, 120, disrupted=119), owned("b", 120, 150, owner="k")], [0, 1], id="another owner's"
        ),
        pytest.param([owned("a", 110, 120, disrupted=119), owned("b", 120, 150, cpu=1.0)], [0, 1], id="another shape"),
        pytest.param(
            [owned("a", 110, 120, disrupted=119, owner=""), owned("b", 120, 150, owner="")], [0, 1], id="no owner"
        ),
        pytest.param([owned("a", 110, 120, outcome="failed"), owned("b", 120, 150)], [0, 1], id="failed by itself"),
        pytest.param(
            [owned("a", 110, 120, disrupted=119, outcome="succeeded"), owned("b", 120, 150)], [0, 1], id="had done it"
        ),
        pytest.param(
            [owned("a", 110, 111, disrupted=110.2), owned("b", 110, 111, disrupted=110.5)], [1, 1], id="no circle"
        ),
    ],
)
def test_the_next_pod_of_the_same_owner_and_shape_is_in_its_place(pods, last):
    assert in_the_end(made_in_place(pods)).tolist() == last


def test_of_many_pods_of_the_same_moment_none_is_in_its_own_place():
    random = np.random.default_rng(1)
    pods = [
        owned(str(row), 110 + int(random.integers(3)), 115, disrupted=110 + int(random.integers(4)))
        for row in range(200)
    ]
    last = in_the_end(made_in_place(pods))
    assert (last == in_the_end(last)).all()


def test_the_cost_of_a_pod_that_was_made_again_many_times_does_not_grow_with_the_square_of_these():
    def lines(count):
        place = np.minimum(np.arange(count) + 1, count - 1)
        assert in_the_end(place).tolist() == [count - 1] * count
        return lines_of(lambda: in_the_end(place))

    assert lines(800) < 2 * lines(50)


def test_what_was_preempted_is_done_once_in_a_simulation_and_was_part_of_the_job(tmp_path):
    pods = [owned("a", 110, 130, disrupted=129), owned("b", 170, 230)]
    file = recording(tmp_path, *pods)
    replay = replay_of(file)
    assert [(job.arrives_at, job.stages[0].durations.tolist()) for job in replay.workload.jobs] == [(10.0, [20, 60])]
    assert [(job.arrives_at, job.stages[0].durations.tolist()) for job in replay.simulated.jobs] == [(10.0, [60])]
    assert [job.backs_off for job in replay.simulated.jobs] == [True]
    assert any(note.startswith("1 pod had to go (preempted, evicted, node gone)") for note in replay.notes)
    assert [job.seconds for job in outcome(file, "recorded").jobs] == [120.0]
    assert [job.seconds for job in outcome(file, "kube-default").jobs] == [60.0]

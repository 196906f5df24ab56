import numpy as np
import pytest

from extender.control.idle_room.measured_use import MeasuredUse
from extender.control.preemption.overload import Limits, Overload, Pressure

AXIS = ("cpu", "memory", "disk-read", "disk-write", "network-in", "network-out", "pods")
NOTHING = np.full(7, np.nan)


def measured(at, cpu=0.0, memory=0.0, disk=0.0, since=None, name="n1", pressure=None):
    """Return one node that offers 10 of everything."""
    used = np.array([[cpu, memory, disk, 0, 0, 0, 10]], dtype=float)
    began = np.array([at if since is None else since], dtype=float)
    return MeasuredUse((name,), AXIS, used, np.full((1, 7), 10.0), began, np.array([at], dtype=float), pressure)


def reasons(overload, *looks):
    """Return after each look which resources somebody is to go for."""
    return [[AXIS[column] for column in overload.look(look)[0].nonzero()[0]] for look in looks]


@pytest.fixture
def overload():
    return Overload(Limits.of())


def test_a_full_cpu_is_borne_for_two_samples(overload):
    looks = [measured(at, cpu=10) for at in (1, 2, 3, 4)]
    assert reasons(overload, *looks) == [[], [], ["cpu"], ["cpu"]]


def test_full_memory_is_not_borne(overload):
    assert reasons(overload, measured(1, memory=9.6)) == [["memory"]]


def test_by_how_much_is_said(overload):
    assert overload.look(measured(1, memory=9.7))[0] == pytest.approx([0, 0.2, 0, 0, 0, 0, 0])


def test_a_sample_counts_once_however_often_it_is_read(overload):
    assert reasons(overload, *[measured(1, cpu=10)] * 5, measured(2, cpu=10)) == [[]] * 6


def test_one_sample_below_starts_the_count_anew(overload):
    looks = [measured(at, cpu=cpu) for at, cpu in enumerate((10, 10, 5, 10, 10, 10))]
    assert reasons(overload, *looks) == [[], [], [], [], [], ["cpu"]]


def test_each_resource_has_its_own_count(overload):
    looks = [measured(1, cpu=10), measured(2, cpu=10, disk=10), measured(3, cpu=10, disk=10), measured(4, disk=10)]
    assert reasons(overload, *looks) == [[], [], ["cpu"], ["disk-read"]]


def test_a_node_that_was_not_measured_starts_anew_and_nobody_goes(overload):
    missing = MeasuredUse(("n1",), AXIS, NOTHING[np.newaxis], np.full((1, 7), 10.0), np.array([3.0]), np.array([3.0]))
    assert reasons(overload, measured(1, cpu=10), measured(2, cpu=10), missing, measured(4, cpu=10)) == [[]] * 4


def test_what_began_before_somebody_left_says_nothing_of_who_is_left(overload):
    reasons(overload, measured(1, memory=10))
    overload.settle("n1", 20.0)
    looks = [measured(15, memory=10), measured(25, memory=10, since=10), measured(30, memory=10, since=21)]
    assert reasons(overload, *looks) == [[], [], ["memory"]]


def test_what_is_no_rate_and_no_memory_is_never_a_reason(overload):
    assert reasons(overload, *[measured(at) for at in (1, 2, 3, 4)]) == [[]] * 4


def test_a_node_that_is_gone_is_forgotten(overload):
    overload.settle("n1", 99.0)
    reasons(overload, measured(1, cpu=10, name="n2"))
    assert reasons(overload, measured(2, memory=10)) == [["memory"]]


def test_counts_follow_a_node_to_another_row(overload):
    assert reasons(overload, measured(1, cpu=10), measured(2, cpu=10)) == [[], []]
    used = np.array([[5.0, 0, 0, 0, 0, 0, 10], [10.0, 0, 0, 0, 0, 0, 10]])
    both = MeasuredUse(("n0", "n1"), AXIS, used, np.full((2, 7), 10.0), np.full(2, 3.0), np.full(2, 3.0))
    assert overload.look(both)[:, 0] == pytest.approx([0, 0.1])


def waits(at, part, cpu=10.0, **others):
    return measured(at, cpu=cpu, pressure=np.array([part]), **others)


class TestPressure:
    @pytest.fixture
    def overload(self):
        return Overload(Limits.of(pressure=Pressure(0.1, 0.8)))

    def test_a_full_cpu_for_which_no_regular_pod_waits_is_borne_for_ever(self, overload):
        assert reasons(overload, *[waits(at, 0.05) for at in range(1, 20)]) == [[]] * 19

    def test_where_regular_pods_wait_somebody_goes_after_the_third_sample_though_the_cpu_is_not_full(self, overload):
        assert reasons(overload, *[waits(at, 0.2, cpu=9) for at in (1, 2, 3)]) == [[], [], ["cpu"]]

    def test_a_tenth_of_the_node_comes_free_or_what_is_used_above_the_floor(self, overload):
        full = [overload.look(waits(at, 0.9))[0, 0] for at in (1, 2, 3)]
        assert full == pytest.approx([0, 0, 1.0])
        assert overload.look(waits(4, 0.9, cpu=8.3))[0, 0] == pytest.approx(0.3)

    def test_one_sample_without_waiting_starts_the_count_anew(self, overload):
        looks = [waits(at, part) for at, part in enumerate((0.2, 0.2, 0.0, 0.2, 0.2, 0.2))]
        assert reasons(overload, *looks) == [[], [], [], [], [], ["cpu"]]

    @pytest.mark.parametrize("pressure", [None, np.array([np.nan])])
    def test_where_it_is_not_known_nobody_goes_for_cpu_and_the_count_starts_anew(self, overload, pressure):
        unknown = measured(3, cpu=10, pressure=pressure)
        looks = [waits(1, 0.2), waits(2, 0.2), unknown, waits(4, 0.2), waits(5, 0.2), waits(6, 0.2)]
        assert reasons(overload, *looks) == [[], [], [], [], [], ["cpu"]]

    def test_memory_and_disks_go_by_use_as_ever(self, overload):
        looks = [waits(at, 0.0, cpu=0.0, memory=9.6, disk=10) for at in (1, 2, 3)]
        assert reasons(overload, *looks) == [["memory"], ["memory"], ["memory", "disk-read"]]

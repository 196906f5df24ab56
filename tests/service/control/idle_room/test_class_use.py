"""What is known of a class: means over pods, of memory their most, and only of those that have run for long enough."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.control.idle_room.class_use import ClassUse, while_running

DEMAND = np.array([[1000.0, 64, 0, 0, 0, 0]])
CLASS = np.array([0])


def uses(*pairs):
    return np.array([[cpu, memory, 0.0, 0, 0, 0] for cpu, memory in pairs])


def rows(*pods):
    return np.array(pods, dtype=np.intp)


def seconds(*ages):
    return np.array(ages, dtype=float)


def test_a_class_of_which_nobody_knows_enough_is_expected_to_use_its_demand():
    book = ClassUse(least=2)
    assert book.expected(CLASS, DEMAND).tolist() == DEMAND.tolist()
    book.learn(rows(0), rows(0), uses((100, 8)), seconds(60))
    assert book.expected(CLASS, DEMAND).tolist() == DEMAND.tolist()


def test_each_pod_counts_once_with_its_mean_and_the_most_of_its_memory():
    # Pod 0 has used 200 in the mean and 16 at most, pod 1 100 and 8: (150, 12).
    book = ClassUse(least=2)
    book.learn(rows(0, 1), rows(0, 0), uses((100, 16), (100, 8)), seconds(40, 40))
    book.learn(rows(0, 1), rows(0, 0), uses((200, 4), (100, 8)), seconds(50, 50))
    assert book.expected(CLASS, DEMAND)[0, :2].tolist() == pytest.approx([150, 12])


def test_a_young_pod_says_nothing_until_it_has_ended():
    book = ClassUse(least=1)
    book.learn(rows(0), rows(0), uses((100, 8)), seconds(10))
    assert book.expected(CLASS, DEMAND).tolist() == DEMAND.tolist()
    book.end(rows(0))
    assert book.expected(CLASS, DEMAND)[0, :2].tolist() == [100, 8]


def test_the_row_of_a_pod_that_has_ended_is_another_pods_later():
    # (100, 30) and (300, 10): the second has not the memory of the first.
    book = ClassUse(least=2)
    book.learn(rows(0), rows(0), uses((100, 30)), seconds(60))
    book.end(rows(0))
    assert book.pods.tolist() == []
    book.learn(rows(0), rows(0), uses((300, 10)), seconds(60))
    assert book.expected(CLASS, DEMAND)[0, :2].tolist() == [200, 20]


def test_a_class_that_is_forgotten_is_not_known_and_its_row_is_another_classes_later():
    book = ClassUse(least=1)
    book.learn(rows(0, 1), rows(0, 1), uses((100, 8), (200, 16)), seconds(60, 60))
    book.forget(rows(0, 7))
    assert book.expected(CLASS, DEMAND).tolist() == DEMAND.tolist()
    assert book.pods.tolist() == [1]
    book.learn(rows(0), rows(0), uses((300, 4)), seconds(60))
    assert book.expected(CLASS, DEMAND)[0, :2].tolist() == [300, 4]


def test_a_pod_that_changes_its_class_counts_in_the_new_one_alone():
    book = ClassUse(least=1)
    book.learn(rows(0, 1), rows(0, 1), uses((400, 16), (100, 8)), seconds(40, 40))
    book.learn(rows(0), rows(1), uses((200, 4)), seconds(50))
    assert book.expected(CLASS, DEMAND).tolist() == DEMAND.tolist()
    assert book.expected(rows(1), DEMAND)[0, :2].tolist() == pytest.approx([150, 6])


def test_a_pod_whose_class_was_forgotten_ends_in_no_other():
    book = ClassUse(least=1)
    book.learn(rows(0, 1), rows(0, 1), uses((400, 16), (100, 8)), seconds(40, 40))
    book.forget(rows(0))
    book.end(rows(0))
    assert book.expected(rows(1), DEMAND)[0, :2].tolist() == pytest.approx([100, 8])


def test_what_is_not_measured_and_who_is_of_no_class_counts_as_demanded():
    demand = np.array([[1000.0, 64, 0, 0, 0, 0, 2]] * 3)
    book = ClassUse(least=1)
    book.learn(rows(0), rows(0), uses((100, 8)), seconds(60))
    found = book.expected(rows(0, -1, 5), demand)
    assert found[0].tolist() == [100, 8, 0, 0, 0, 0, 2]
    assert found[1:].tolist() == demand[1:].tolist()


def test_a_pod_that_ran_for_a_part_of_the_window_used_more_while_it_ran_and_of_memory_as_much():
    # 20 of 60 seconds: three times as much. With 10 of them not seen, six times. At 60 it is the mean itself.
    use = uses((100, 8), (100, 8), (100, 8))
    assert while_running(use, seconds(20, 60, 90), 60.0)[:, :2].tolist() == [[300, 8], [100, 8], [100, 8]]
    assert while_running(use, seconds(20, 60, 90), 60.0, unseen=10.0)[:, :2].tolist() == [[600, 8], [100, 8], [100, 8]]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 1000), st.integers(0, 64), st.integers(0, 90)),
        max_size=30,
    )
)
def test_what_is_expected_is_never_less_than_the_least_nor_more_than_the_most_that_was_measured(events):
    """A class that is known lies between what its pods were measured to use; one that is not is its demand."""
    book, class_of, measured = ClassUse(least=1), {}, {0: [], 1: [], 2: []}
    for pod, task_class, cpu, memory, age in events:
        row = class_of.setdefault(pod, task_class)
        book.learn(rows(pod), rows(row), uses((cpu, memory)), seconds(age))
        measured[row].append((cpu, memory))
    book.end(rows(*class_of))
    found = book.expected(rows(0, 1, 2), np.tile(DEMAND, (3, 1)))
    for row, pairs in measured.items():
        for column in (0, 1):
            values = [pair[column] for pair in pairs] or [DEMAND[0, column]]
            assert min(values) - 1e-6 <= found[row, column] <= max(values) + 1e-6

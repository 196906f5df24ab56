"""What is known of a class: means over tasks, of memory their most, and only of those that have run for long enough."""

import numpy as np
import pytest

from lab.sim.opportunistic.class_use import ClassUse

DEMAND = np.array([[1000.0, 64, 0, 0, 0, 0]])
CLASS = np.array([0])


def uses(*pairs):
    return np.array([[cpu, memory, 0.0, 0, 0, 0] for cpu, memory in pairs])


def rows(*tasks):
    return np.array(tasks, dtype=np.intp)


def test_a_class_of_which_nobody_knows_enough_is_expected_to_use_its_demand():
    book = ClassUse(1, 4, 6, least=2)
    book.learn(rows(0), rows(0), uses((100, 8)), np.array([60.0]))
    assert book.expected(CLASS, DEMAND).tolist() == DEMAND.tolist()


def test_each_task_counts_once_with_its_mean_and_the_most_of_its_memory():
    # Task 0 has used 200 in the mean and 16 at most, task 1 100 and 8: (150, 12).
    book = ClassUse(1, 4, 6, least=2)
    book.learn(rows(0, 1), rows(0, 0), uses((100, 16), (100, 8)), np.array([40.0, 40]))
    book.learn(rows(0, 1), rows(0, 0), uses((200, 4), (100, 8)), np.array([50.0, 50]))
    assert book.expected(CLASS, DEMAND)[0, :2].tolist() == pytest.approx([150, 12])


def test_a_young_task_says_nothing_until_it_has_ended():
    book = ClassUse(1, 4, 6, least=1)
    book.learn(rows(0), rows(0), uses((100, 8)), np.array([10.0]))
    assert book.expected(CLASS, DEMAND).tolist() == DEMAND.tolist()
    book.learn(rows(), rows(), uses().reshape(0, 6), np.empty(0))
    assert book.expected(CLASS, DEMAND)[0, :2].tolist() == [100, 8]

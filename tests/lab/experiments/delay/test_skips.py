import math

import pytest

from lab.experiments.delay import skips


def test_a_job_lets_chances_pass_until_its_last_task_is_beside_its_input():
    # M / R = 1 / ln 2: a chance has the input of one of K tasks with 1 - 2^-K, that is 1/2 and 3/4
    assert skips_in_all(1, math.log(2)) == pytest.approx(1.0)  # 1 / (1/2) - 1
    assert skips_in_all(2, math.log(2)) == pytest.approx(1.0 + 1 / 3)  # and 1 / (3/4) - 1


def skips_in_all(tasks, copies_per_node):
    return skips.skips_in_all(tasks=tasks, nodes=1, replicas=copies_per_node)

"""Tasks that can never be placed are left out, with how many of each job there are."""

import pytest

from extender.cluster.peers import HostPort, Peers
from lab.packing.misfits import without_misfits
from lab.packing.model import problem_of
from tests.lab.packing.test_keeping import HOST, ZONE, machine, of, pod

APART, APART_BY_ZONE = Peers(away=(of("web"),)), Peers(away=(of("web", ZONE),))
THREE = [machine("m0", "a"), machine("m1", "a"), machine("m2", "b")]


def left_of(nodes, tasks, leaving=()):
    problem, misfits = without_misfits(problem_of(nodes, tasks, leaving))
    return dict(zip(problem.classes.job, problem.classes.count.tolist(), strict=True)), misfits


@pytest.mark.parametrize(
    ("peers", "left"), [(APART, 3), (APART_BY_ZONE, 2), (Peers(ports=(HostPort(80),)), 3), (Peers(), 5)]
)
def test_of_tasks_that_keep_apart_as_many_are_left_as_there_are_domains(peers, left):
    found, misfits = left_of(THREE, [pod("web", peers, cpu=100)] * 5)
    assert found == {"web": left}
    assert misfits == ({"web": 5 - left} if left < 5 else {})


def test_domains_count_where_a_task_fits_and_nobody_is_who_leaves_with_the_machine():
    small = machine("m3", "c", cpu=500)
    agent = pod("web", cpu=100, node="m0")
    assert left_of([*THREE, small], [pod("web", APART)] * 5) == ({"web": 3}, {"web": 2})
    assert left_of([*THREE, small], [pod("web", APART)] * 5, [agent]) == ({"web": 2}, {"web": 3})


def test_machines_without_a_domain_take_any_number():
    assert left_of([*THREE, machine("m3", "")], [pod("web", APART_BY_ZONE, cpu=100)] * 9) == ({"web": 9}, {})


def test_jobs_that_keep_apart_from_one_another_share_the_domains_and_the_first_to_arrive_stays():
    first, second = (pod("web", APART, job=job, arrived=at) for job, at in (("old", 1.0), ("new", 2.0)))
    assert left_of(THREE, [second, second, first, first]) == ({"old": 2, "new": 1}, {"new": 1})


def test_tasks_that_are_near_others_or_spread_wait_for_these_and_are_no_misfits():
    near = Peers(near=(of("db", HOST),))
    assert left_of(THREE, [pod("web", near)]) == ({"web": 1}, {})


def test_tasks_that_are_too_large_for_each_machine_are_misfits():
    assert left_of(THREE, [pod("web"), pod("huge", cpu=9000)]) == ({"web": 1}, {"huge": 1})

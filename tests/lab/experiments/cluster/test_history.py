"""What a watch showed: times are of the first sight; what must not happen is counted once per pod."""

import numpy as np

from lab.experiments.cluster.figures import watch_figures
from lab.experiments.cluster.history import History
from tests.lab.experiments.small_cluster import pod


def seen(*pods):
    """Return the history of one pod, seen like this, a second after the other."""
    history = History(1)
    history.opened[0] = 0.0
    for at, it in enumerate(pods):
        history.see(0, it, float(at))
    return history


def test_times_are_those_of_the_first_sight():
    history = seen(
        pod("p", held=True),
        pod("p"),
        pod("p", node=1),
        pod("p", node=1, runs=True),
        pod("p", node=1, runs=True),
        pod("p", node=1, ended=True),
    )
    times = [getattr(history, name)[0] for name in ("created", "turn", "bound", "running", "ended")]
    assert times == [0, 1, 2, 3, 5]
    assert (history.lost, history.stuck, history.double) == (0, 0, 0)


def test_a_pod_without_our_gate_has_its_turn_when_it_is_created():
    assert seen(pod("p")).turn[0] == 0.0


def test_the_time_from_a_turn_is_that_of_pods_that_were_held_where_there_are_any():
    history = History(2)
    for at, states in enumerate([(pod("a"), pod("b", held=True)), (pod("a"), pod("b")), (pod("a"), pod("b", node=0))]):
        for row, it in enumerate(states):
            history.see(row, it, float(at))
    history.see(0, pod("a", node=1), 60.0)  # created at 0, refused for a minute: nobody sees when its turn came
    assert history.held.tolist() == [False, True]
    assert watch_figures(history).turn_to_bound == (1.0, 1.0)


def test_a_pod_without_a_node_is_stuck_and_lost_and_one_that_has_not_ended_is_lost():
    waits, runs = seen(pod("p", held=True)), seen(pod("p", node=0, runs=True))
    assert (waits.stuck, waits.lost) == (1, 1)
    assert (runs.stuck, runs.lost) == (0, 1)


def test_a_pod_that_nobody_asked_for_yet_is_neither():
    history = History(2)
    assert (history.stuck, history.lost) == (0, 0)


def test_a_pod_that_failed_is_lost():
    assert seen(pod("p", node=0, failed=True)).lost == 1


def test_a_second_node_a_second_release_and_a_second_pod_are_double():
    assert seen(pod("p", node=0), pod("p", node=1)).double == 1
    assert seen(pod("p", held=True), pod("p"), pod("p", held=True), pod("p")).double == 1
    assert seen(pod("p"), pod("p", uid="another")).double == 1
    assert seen(pod("p", held=True), pod("p"), pod("p", node=0)).double == 0


def test_what_was_never_seen_has_no_time():
    assert np.isnan(seen(pod("p", held=True)).turn[0])

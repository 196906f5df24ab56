"""CPU time from /proc: of processes and of the machine."""

import os
import time

import pytest

from lab.controlplane import processes
from lab.controlplane.processes import Load, LoadMeter


def test_the_cpu_time_of_a_process_is_what_it_has_used():
    before, own = processes.cpu_seconds({"self": os.getpid()})["self"], time.process_time()
    while time.process_time() - own < 0.2:
        pass
    used = processes.cpu_seconds({"self": os.getpid()})["self"] - before
    spent = time.process_time() - own
    assert abs(used - spent) <= 0.03  # /proc counts in hundredths of a second, user and system time apart


def test_the_machine_has_used_at_least_what_this_process_has():
    machine, own = processes.machine_seconds(), time.process_time()
    while time.process_time() - own < 0.2:
        pass
    assert processes.machine_seconds() - machine >= 0.17


def test_waiting_is_no_work():
    # user 100, nice 0, system 50, idle 1000, waiting for disks 400, interrupts 1 + 2, stolen 3; guests' 40 are user's
    line = "cpu  100 0 50 1000 400 1 2 3 40 0\ncpu0 1 2 3\n"
    ticks = os.sysconf("SC_CLK_TCK")
    assert processes._busy(line) == (100 + 50 + 1 + 2 + 3) / ticks


def test_a_program_s_name_with_spaces_and_parentheses_is_no_field():
    stat = "7 (a (b) c) S 1 1 1 0 -1 4 5 6 7 8 300 200 0 0 20 0 1"
    assert processes._used(stat) == 500 / os.sysconf("SC_CLK_TCK")


def test_a_load_is_of_this_process_and_of_all_others():
    meter, own = LoadMeter({}), time.process_time()
    begun = time.monotonic()
    while time.process_time() - own < 0.2:
        pass
    load, seconds = meter.load(), time.monotonic() - begun
    assert load.own * seconds >= 0.19
    assert load.others >= 0
    assert load.cores == os.cpu_count()


@pytest.mark.parametrize(
    ("own", "others", "crowded"),
    [(1.6, 0.05, False), (1.6, 0.3, True), (0.5, 0.9, False), (0.2, 1.8, True)],
)
def test_processes_are_crowded_where_others_take_much_and_hardly_anything_is_idle(own, others, crowded):
    assert Load(2, own, others).crowded is crowded

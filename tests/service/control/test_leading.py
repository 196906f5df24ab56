"""Who leads, by a Lease that is only a record: times by hand."""

import pytest
from structlog.testing import capture_logs

from extender.cluster.lease import Record
from extender.control.leading import Leader, LeaseTimes
from extender.errors import ClusterError

TERMS = LeaseTimes(renew=10.0, retry=2.0)


class Server:
    """One Lease, written only by who has seen what is there."""

    def __init__(self):
        self.record, self.down, self.version = None, False, 0

    def read(self):
        if self.down:
            raise ClusterError("down")
        return self.record

    def write(self, holder, before):
        if self.down or before != self.record:
            raise ClusterError("somebody else was faster")
        self.version += 1
        self.record = Record(holder, 15.0, str(self.version))
        return self.record


class Time:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def server():
    return Server()


def leader(server, time, name):
    return Leader(server, name, TERMS, time)


def test_the_first_to_write_leads_and_the_second_does_not(server, time):
    a, b = leader(server, time, "a"), leader(server, time, "b")
    a.attempt()
    b.attempt()
    assert (a.leads(), b.leads()) == (True, False)


def test_renewed_in_time_it_stays(server, time):
    a, b = leader(server, time, "a"), leader(server, time, "b")
    a.attempt()
    for _ in range(20):
        time.now += 5
        a.attempt()
        b.attempt()
    assert (a.leads(), b.leads()) == (True, False)


def test_who_cannot_renew_stops_before_another_may_begin(server, time):
    a, b = leader(server, time, "a"), leader(server, time, "b")
    a.attempt()
    b.attempt()  # at 0 b sees a's renewal: it may take over after 15
    while not b.leads():
        time.now += 0.5
        assert not (a.leads() and b.leads())
        b.attempt()
    assert time.now == 15.5
    time.now = 9.5
    assert a.leads()
    time.now = 10.0
    assert not a.leads(), "5 s before b could"


def test_a_process_that_was_paused_knows_at_once_that_it_no_longer_leads(server, time):
    a, b = leader(server, time, "a"), leader(server, time, "b")
    a.attempt()
    b.attempt()
    time.now = 16
    b.attempt()
    assert b.leads()
    assert not a.leads()
    a.attempt()
    assert not a.leads()
    assert server.record.holder == "b"


def test_a_lease_given_up_is_taken_at_once(server, time):
    a, b = leader(server, time, "a"), leader(server, time, "b")
    a.attempt()
    b.attempt()
    a.give_up()
    time.now = 0.1
    b.attempt()
    assert (a.leads(), b.leads()) == (False, True)


def test_an_attempt_under_way_at_the_end_takes_nothing_back(time):
    class Slow(Server):
        ends = False

        def read(self):
            if self.ends:
                self.ends = False
                a.give_up()
            return super().read()

    server = Slow()
    a = leader(server, time, "a")
    a.attempt()
    server.ends = True
    a.attempt()
    assert server.record.holder == ""
    assert not a.leads()


def test_who_does_not_lead_gives_nothing_up(server, time):
    a, b = leader(server, time, "a"), leader(server, time, "b")
    a.attempt()
    b.give_up()
    assert server.record.holder == "a"


def test_while_the_server_is_gone_the_leader_leads_until_its_time_is_over(server, time):
    a = leader(server, time, "a")
    a.attempt()
    server.down = True
    time.now = 9
    a.attempt()
    assert a.leads()
    time.now = 11
    a.attempt()
    assert not a.leads()
    server.down = False
    a.attempt()
    assert a.leads()


def test_the_same_process_started_again_is_another_replica(server, time):
    leader(server, time, "host_1").attempt()
    again = leader(server, time, "host_2")
    again.attempt()
    assert not again.leads()


def test_whatever_a_renewal_raises_the_loop_goes_on(time):
    led = []

    class Odd(Server):
        def read(self):
            led.append(True)
            if len(led) == 1:
                raise ValueError("cut off")
            a.stop()
            return super().read()

    a = Leader(Odd(), "a", LeaseTimes(10.0, 0.001), time)
    a.run()
    assert len(led) == 2
    assert a.leads()


def test_the_log_says_it_when_the_time_of_a_leader_runs_out_between_two_attempts(time):
    turns = []

    def moved():
        turns.append(True)
        time.now += 11  # it leads for 10 s after a renewal
        if len(turns) == 3:
            a.stop()

    a = Leader(Server(), "a", LeaseTimes(10.0, 0.001), time, moved)
    with capture_logs() as logs:
        a.run()
    assert [line["event"] for line in logs] == ["leading", "no longer leading"] * 2 + ["leading"]

"""Nobody is held once nobody is left to release: turns by hand."""

from extender.cluster.hold import Hold
from extender.cluster.lease import Record
from extender.control.holding.ender import HoldEnder
from extender.errors import ClusterError


class Cluster:
    """A Lease that is renewed by `renew`, a Hold, and whether the API server answers."""

    def __init__(self, *, held=True):
        self.record, self.down, self.now = Record("control", 15.0, "1"), False, 0.0
        self.hold, self.writes = Hold(held, "", "5"), []
        self.ender = HoldEnder(self, _Holds(self), 60.0, lambda: self.now)

    def read(self):
        if self.down:
            raise ClusterError("no route")
        return self.record

    def renew(self):
        self.record = Record("control", 15.0, f"{self.now}")

    def turns(self, seconds):
        for _ in range(seconds // 10):
            self.now += 10
            self.ender.turn()
        return self.hold.held


class _Holds:
    def __init__(self, cluster):
        self.cluster = cluster

    def read(self):
        return self.cluster.hold

    def write(self, hold, before):
        assert before is self.cluster.hold
        self.cluster.writes.append(hold)
        self.cluster.hold = hold


def test_new_pods_pass_once_the_lease_has_not_been_renewed_for_a_minute():
    cluster = Cluster()
    cluster.ender.turn()

    assert cluster.turns(50)
    assert not cluster.turns(10)
    assert "has not been renewed for 60 s" in cluster.hold.why


def test_while_it_is_renewed_nothing_is_written():
    cluster = Cluster()
    for _ in range(30):
        cluster.renew()
        assert cluster.turns(20)

    assert cluster.writes == []


def test_without_a_lease_nobody_is_held_for_long():
    cluster = Cluster()
    cluster.record = None
    cluster.ender.turn()

    assert not cluster.turns(60)


def test_what_is_right_already_is_not_written():
    cluster = Cluster(held=False)
    cluster.ender.turn()
    cluster.turns(120)

    assert cluster.writes == []


def test_where_there_is_no_hold_none_is_made():
    cluster = Cluster()
    cluster.hold = None
    cluster.ender.turn()
    cluster.now = 60.0
    cluster.ender.turn()

    assert cluster.writes == []


def test_time_in_which_the_api_server_does_not_answer_does_not_count():
    cluster = Cluster()
    cluster.ender.turn()
    cluster.turns(50)
    cluster.down = True
    cluster.turns(100)
    cluster.down = False

    assert cluster.turns(60)
    assert not cluster.turns(10)


def test_a_process_that_just_started_gives_control_the_whole_time():
    cluster = Cluster()
    cluster.now = 5_000.0
    cluster.ender.turn()

    assert cluster.turns(50)

"""The Hold is written until it says what was decided, by the leader alone: turns by hand."""

import pytest
from structlog.testing import capture_logs

from extender.cluster.hold import Hold
from extender.control.holding.decision import Holding
from extender.control.holding.keeper import NOBODY_WAITS, SOMEBODY_WAITS, HoldKeeper
from extender.errors import ClusterError


def refused(status):
    error = ClusterError(f"refused: {status}")
    error.status = status
    return error


class Cluster:
    """One Hold, which only who knows its newest version may change; `error` is raised by writes, `deaf` loses them."""

    def __init__(self, held=None):
        self.hold = None if held is None else Hold(held, SOMEBODY_WAITS if held else NOBODY_WAITS, "1")
        self.reads, self.writes, self.error, self.deaf = 0, [], None, False

    def read(self):
        self.reads += 1
        return self.hold

    def write(self, hold, before):
        self.writes.append((hold.held, hold.why))
        if self.error is not None:
            raise self.error
        if before != self.hold:
            raise refused(409)
        if not self.deaf:
            self.hold = Hold(hold.held, hold.why, str(len(self.writes) + 1))


class Keeping:
    """A keeper, its clock, and whether it leads."""

    def __init__(self, cluster, always=""):
        self.now, self.leads, self.holding = 100.0, True, Holding()
        self.keeper = HoldKeeper(self.holding, cluster, lambda: self.leads, lambda: self.now, always=always)

    def turn(self, seconds=0.0, *, waits=None):
        self.now += seconds
        if waits is not None:
            self.holding.note(somebody_waits=waits, now=self.now)
        self.keeper.turn()
        return self.keeper.shown


def test_a_hold_that_is_missing_is_made_and_holds_nobody():
    cluster = Cluster()
    keeping = Keeping(cluster)

    keeping.turn()

    assert (cluster.hold.held, cluster.hold.why) == (False, NOBODY_WAITS)
    assert keeping.turn() is False
    assert (len(cluster.writes), keeping.keeper.flips) == (1, 0)


def test_each_flip_is_one_write_and_nothing_is_read_or_written_in_between():
    cluster = Cluster(held=False)
    keeping = Keeping(cluster)
    keeping.turn()

    keeping.turn(1.0, waits=True)
    assert keeping.turn() is True
    reads = cluster.reads
    for _ in range(5):
        keeping.turn(1.0, waits=True)
    assert cluster.reads == reads
    keeping.turn(5.0, waits=False)

    assert keeping.turn() is False
    assert cluster.writes == [(True, SOMEBODY_WAITS), (False, NOBODY_WAITS)]
    assert keeping.keeper.flips == 2


def test_a_write_is_repeated_until_it_is_read_back():
    cluster = Cluster(held=False)
    keeping = Keeping(cluster)
    keeping.turn()
    cluster.deaf = True

    keeping.turn(waits=True)
    keeping.turn()
    keeping.turn()
    assert not cluster.hold.held
    cluster.deaf = False
    keeping.turn()

    assert keeping.turn() is True
    assert len(cluster.writes) == 4


def test_what_others_write_is_put_right_within_ten_seconds():
    cluster = Cluster(held=False)
    keeping = Keeping(cluster)
    keeping.turn(waits=True)
    keeping.turn()
    cluster.hold = Hold(False, "dovetail serve", "99")

    assert keeping.turn(9.0, waits=True) is True
    keeping.turn(2.0, waits=True)

    assert cluster.hold.held


def test_an_old_reason_is_put_right_without_a_flip():
    cluster = Cluster(held=False)
    cluster.hold = Hold(False, "the Lease of dovetail control has not been renewed for 60 s", "1")
    keeping = Keeping(cluster)

    assert keeping.turn() is False

    assert (cluster.writes, keeping.keeper.flips) == ([(False, NOBODY_WAITS)], 0)
    keeping.turn(11.0)
    assert len(cluster.writes) == 1


def test_a_new_leader_goes_on_from_what_its_predecessor_wrote():
    cluster = Cluster(held=True)
    keeping = Keeping(cluster)

    assert keeping.turn() is True
    assert keeping.turn(4.0, waits=False) is True
    assert cluster.writes == []
    keeping.turn(1.0, waits=False)

    assert not cluster.hold.held


def test_who_does_not_lead_neither_reads_nor_writes_nor_says_anything():
    cluster = Cluster(held=False)
    keeping = Keeping(cluster)
    keeping.leads = False

    assert keeping.turn(waits=True) is None
    assert (cluster.reads, cluster.writes) == (0, [])


def test_a_replica_that_leads_again_looks_first():
    cluster = Cluster(held=False)
    keeping = Keeping(cluster)
    keeping.turn()
    keeping.leads = False
    keeping.turn(60.0)
    cluster.hold = Hold(True, SOMEBODY_WAITS, "7")
    keeping.leads = True

    assert keeping.turn(1.0) is True
    assert cluster.writes == []


@pytest.mark.parametrize("status", [403, 404])
def test_without_the_kind_or_the_right_to_it_it_is_left_for_a_minute(status):
    cluster = Cluster()
    keeping = Keeping(cluster)
    cluster.error = refused(status)

    for _ in range(59):
        assert keeping.turn(1.0, waits=True) is None
    assert len(cluster.writes) == 1
    cluster.error = None
    keeping.turn(60.0, waits=True)

    assert cluster.hold.held


@pytest.mark.parametrize("error", [refused(409), refused(500), ClusterError("no route")])
def test_any_other_failure_is_tried_again_at_the_next_turn(error):
    cluster = Cluster(held=False)
    keeping = Keeping(cluster)
    cluster.error = error

    keeping.turn(waits=True)
    cluster.error = None
    keeping.turn(1.0, waits=True)

    assert cluster.hold.held


def test_a_failure_that_lasts_is_said_once_and_again_after_a_success():
    cluster = Cluster(held=False)
    keeping = Keeping(cluster)

    with capture_logs() as logs:
        for waits in (True, False):
            cluster.error = refused(500)
            for _ in range(10):
                keeping.turn(1.0, waits=waits)
            cluster.error = None
            keeping.turn(1.0, waits=waits)

    assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["hold not written"] * 2


def test_that_the_kind_is_missing_is_said_once():
    cluster = Cluster()
    keeping = Keeping(cluster)
    cluster.error = refused(404)

    with capture_logs() as logs:
        for _ in range(5):
            keeping.turn(61.0)

    assert len(cluster.writes) == 5
    assert [line["event"] for line in logs] == ["pods cannot be held; filter alone keeps the order"]


def test_where_pods_are_always_held_the_reason_is_written():
    cluster = Cluster(held=False)
    keeping = Keeping(cluster, always="reclaim acts for held pods alone")

    keeping.turn(waits=False)
    keeping.turn(60.0, waits=False)

    assert cluster.hold.held
    assert cluster.writes == [(True, "reclaim acts for held pods alone")]

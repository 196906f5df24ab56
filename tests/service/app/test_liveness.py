"""Whether a process still does what it is for: threads that die, loops that stand still. Times by hand."""

import threading
import urllib.error
import urllib.request
from functools import partial

import pytest

from extender.adapters.http.health import create_health_app
from extender.app.controlling import Control
from extender.app.liveness import SILENT_SECONDS, Liveness
from extender.app.serving import ExtenderService
from extender.control.leading import Leader, LeaseTimes
from extender.errors import ClusterError
from extender.settings import Settings
from extender.settings.sections import ServerSettings


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def liveness(clock):
    return Liveness(clock)


def fail():
    raise RuntimeError("unheard of")


def test_a_thread_that_raises_is_named_with_the_reason(liveness):
    liveness.start("watch-pods", fail).join()
    assert liveness.problem() == "thread watch-pods has died: RuntimeError('unheard of')"


def test_a_thread_that_leaves_the_interpreter_has_died_too(liveness):
    liveness.start("lease", partial(exec, "raise SystemExit(3)")).join()
    assert liveness.problem() == "thread lease has died: SystemExit(3)"


def test_a_thread_that_returns_is_done(liveness, clock):
    liveness.start("start", lambda: liveness.beat("start")).join()
    clock.now += 10 * SILENT_SECONDS
    assert liveness.problem() is None


def test_a_loop_that_has_not_moved_for_too_long_is_named_until_it_moves_again(liveness, clock):
    liveness.beat("release")
    clock.now += SILENT_SECONDS
    assert liveness.problem() is None
    clock.now += 1
    assert liveness.problem() == "release has not moved for more than 180 s"
    liveness.beat("release")
    assert liveness.problem() is None


def test_a_loop_that_rests_has_that_time_more(liveness, clock):
    liveness.beat("observe", rest_seconds=600)
    clock.now += 600 + SILENT_SECONDS
    assert liveness.problem() is None
    clock.now += 1
    assert liveness.problem() is not None


def test_of_many_writes_one_that_never_ends_is_enough(liveness, clock):
    with liveness.during("write"):
        clock.now += SILENT_SECONDS
        with liveness.during("write"):
            pass
        clock.now += 1
        assert liveness.problem() == "write has not moved for more than 180 s"
    assert liveness.problem() is None


def test_a_write_that_raises_has_ended(liveness, clock):
    class Poster:
        def post(self, path, body):
            fail()

    with pytest.raises(RuntimeError):
        liveness.over(Poster(), "recorder").post("/events", {})
    clock.now += 2 * SILENT_SECONDS
    assert liveness.problem() is None


def test_who_runs_for_a_lease_moves_at_each_turn_also_where_the_server_is_gone(liveness, clock):
    class Gone:
        def read(self):
            clock.now += 100
            if clock.now > 2_000:
                leader.stop()
            raise ClusterError("gone")

    leader = Leader(Gone(), "a", LeaseTimes(10, 0.001), clock, moved=partial(liveness.beat, "lease"))
    leader.run()
    assert clock.now == 2_100
    assert liveness.problem() is None


def test_the_probe_says_what_is_wrong(liveness):
    app = create_health_app(live=liveness.problem, ready=lambda: None, metrics=bytes, waits=bytes).test_client()
    assert app.get("/livez").status_code == 200
    liveness.start("lease", fail).join()
    answer = app.get("/livez")
    assert (answer.status_code, answer.text) == (503, "thread lease has died: RuntimeError('unheard of')\n")
    assert app.get("/readyz").status_code == 200


# -- the processes


class Api:
    """An API server of which `check_version` does what is given, and which has nothing else."""

    def __init__(self, check):
        self.check_version = check

    def apart(self, _seconds):
        return self

    def read(self, path, params=()):
        raise ClusterError("nothing is here")

    def get(self, path, params=(), *, seconds=30.0):
        raise ClusterError("nothing is here")


def probed(process, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{process.port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def made(kind, check):
    return kind(Settings(server=ServerSettings(port=0)), Api(check))


@pytest.mark.parametrize(("kind", "thread"), [(ExtenderService, "start"), (Control, "release")])
def test_a_process_that_cannot_even_start_is_not_live(kind, thread):
    failed = threading.Event()

    def check():
        failed.set()
        fail()

    process = made(kind, check)
    running = threading.Thread(target=process.run)
    running.start()
    assert failed.wait(10)
    for _ in range(100):
        status, text = probed(process, "/livez")
        if status != 200:
            break
    process.stop()
    running.join(20)
    assert (status, text) == (503, f"thread {thread} has died: RuntimeError('unheard of')\n")


def test_a_write_that_fails_unforeseen_is_counted_and_ends_no_writer(clock):
    control = made(Control, fail)
    control.liveness.clock = clock
    written = threading.Semaphore(0)
    for _ in range(10):
        control._run_soon(fail)
        control._run_soon(written.release)
    assert all(written.acquire(timeout=10) for _ in range(10))
    control.stop()
    control._run_soon(written.release)
    control.run()
    assert b"dovetail_control_failures_total 10.0" in control._metrics.text()
    assert not written.acquire(blocking=False), "after the stop nothing is begun"
    clock.now += 2 * SILENT_SECONDS
    assert "write" not in (control.liveness.problem() or "")


def test_steps_that_all_fail_are_no_progress(clock):
    class Broken:
        def __init__(self, whole):
            self._whole = whole

        def __getattr__(self, name):
            return getattr(self._whole, name)

        def step(self, now):
            fail()

        def rest(self, now):
            pass

    control = made(Control, fail)
    control.liveness.clock = clock
    control._caches.problem = lambda: None
    control._reclaimer = control._releaser = Broken(control._releaser)
    control._rest()
    begun, clock.now = clock.now, clock.now + SILENT_SECONDS  # planSeconds, 3, are a rest
    control._step()
    assert control.liveness.problem() is None
    clock.now = begun + 3 + SILENT_SECONDS + 1
    assert control.liveness.problem() == "release has not moved for more than 180 s"
    assert b"dovetail_control_failures_total 1.0" in control._metrics.text()
    control.stop()
    control.run()  # closes its socket

"""Draw examples of properties until the time, or a number of draws, is up: `python -m tests.fuzz --help`."""

import argparse
import multiprocessing
import queue
import secrets
import signal
import subprocess
import sys
import time
import traceback

import structlog

from tests.fuzz.broken import Broken
from tests.fuzz.properties import GROUPS, PROPERTIES, draw, size_of

_SEED_STEP = 10**9
"""Draws of one seed have numbers of their own."""
_LONGEST_SECONDS = 60
"""A draw that takes longer hangs."""
_TELL_SECONDS = 10.0
_HYPOTHESIS = ("-q", "-m", "hypothesis and not integration and not kind", "--hypothesis-profile", "fuzz")


def main():
    told = _arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    if told.draw is not None:
        return _replay(told.properties, told.draw)
    seed = secrets.randbelow(10**6) if told.seed is None else told.seed
    names = [name for asked in told.properties or GROUPS for name in GROUPS.get(asked, (asked,))]
    print(f"seed {seed}: {', '.join(names)}", flush=True)
    failed = False
    seconds = told.minutes * 60 if told.minutes else None
    if told.hypothesis:
        failed = _by_hypothesis(seed, seconds / 3)
        seconds *= 2 / 3
    faults = _draw_all(names, seed, told.draws, seconds, told.jobs)
    for (name, what), (number, text) in sorted(faults.items()):
        print(f"\nBROKEN {name}: {what}\n{text}\nreplay: python -m tests.fuzz {name} --draw {number}")
    print(f"\n{len(faults)} distinct faults; seed {seed}")
    return int(failed or bool(faults))


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    known = [*GROUPS, *PROPERTIES]
    parser.add_argument("properties", nargs="*", choices=[[], *known], metavar="PROPERTY", help=", ".join(known))
    parser.add_argument("--seed", type=int, help="default: a fresh one, which is printed")
    parser.add_argument("--minutes", type=float, help="for how long")
    parser.add_argument("--draws", type=int, help="how many draws, shared evenly by the properties")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count(), help="processes (%(default)s)")
    parser.add_argument("--draw", type=int, help="replay this one draw of one property")
    parser.add_argument("--hypothesis", action="store_true", help="a third of the time: all of hypothesis' properties")
    told = parser.parse_args()
    if (told.minutes is None) == (told.draws is None) and told.draw is None:
        parser.error("one of --minutes, --draws and --draw is needed")
    if told.hypothesis and told.minutes is None:
        parser.error("--hypothesis goes with --minutes")
    if told.draw is not None and (len(told.properties) != 1 or told.properties[0] not in PROPERTIES):
        parser.error("--draw is of one property")
    return told


def _replay(properties, number):
    """Draw one again; what breaks is shown whole."""
    draw(properties[0], number)
    print(f"{properties[0]} {number} (size {size_of(number)}) holds")
    return 0


def _by_hypothesis(seed, seconds):
    """Run all tests that hypothesis draws for, at other seeds until the time is up; it prints how to replay."""
    deadline, failed = time.monotonic() + seconds, False
    while time.monotonic() < deadline:
        command = [sys.executable, "-m", "pytest", *_HYPOTHESIS, f"--hypothesis-seed={seed}"]
        print(f"$ {' '.join(command[1:])}", flush=True)
        failed = subprocess.run(command).returncode != 0 or failed
        seed += _SEED_STEP
    return failed


def _draw_all(names, seed, draws, seconds, jobs):
    """Return the distinct faults: by property and what is broken, the smallest draw and its words."""
    told, deadline = multiprocessing.Queue(), time.monotonic() + seconds if seconds else float("inf")
    arguments = [(names, seed, jobs, part, draws, deadline, told) for part in range(jobs)]
    workers = [multiprocessing.Process(target=_work, args=it, daemon=True) for it in arguments]
    for worker in workers:
        worker.start()
    faults, done, running, began, said = {}, dict.fromkeys(names, 0), jobs, time.monotonic(), time.monotonic()
    while running:
        try:
            name, count, fault = told.get(timeout=2 * _LONGEST_SECONDS)
        except queue.Empty:
            faults["worker", "a draw hangs or has killed its process"] = (0, "run again with --jobs 1")
            break
        if name is None:
            running -= 1
            continue
        done[name] += count
        if fault is not None:
            what, number, text = fault
            known = faults.get((name, what))
            if known is None or size_of(number) < size_of(known[0]):
                faults[name, what] = (number, text)
            if known is None:
                print(f"broken: {name}: {what} (python -m tests.fuzz {name} --draw {number})", flush=True)
        if time.monotonic() - said > _TELL_SECONDS:
            said = time.monotonic()
            _tell(done, faults, said - began)
    _tell(done, faults, time.monotonic() - began)
    for worker in workers:
        worker.terminate()
    return faults


def _tell(done, faults, seconds):
    counts = ", ".join(f"{name} {count:,}" for name, count in done.items())
    print(f"{seconds:5.0f} s: {sum(done.values()):,} draws, {len(faults)} distinct faults ({counts})", flush=True)


def _work(names, seed, jobs, part, draws, deadline, told):
    """Draw every `jobs`-th number of each property, each for the same time, and tell what came of it now and then."""
    signal.signal(signal.SIGALRM, _hangs)
    each = draws // len(names) if draws else float("inf")
    numbers, spent, counts = dict.fromkeys(names, part), dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
    said = now = time.monotonic()
    while now < deadline and (left := [name for name in names if numbers[name] < each]):
        name = min(left, key=spent.__getitem__)
        if fault := _drawn(name, seed * _SEED_STEP + numbers[name]):
            told.put((name, 0, fault))
        then, now = now, time.monotonic()
        spent[name] += now - then
        numbers[name] += jobs
        counts[name] += 1
        if now - said > 1.0:
            said, counts = now, _hand_over(counts, told)
    _hand_over(counts, told)
    told.put((None, 0, None))


def _hand_over(counts, told):
    for name, count in counts.items():
        told.put((name, count, None))
    return dict.fromkeys(counts, 0)


def _drawn(name, number):
    """Draw once; return what is broken, the number and the words of it, or None."""
    signal.alarm(_LONGEST_SECONDS)
    try:
        draw(name, number)
    except Broken as broken:
        return broken.what, number, str(broken)[:2_000]
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__} at {where.filename.rpartition('/')[2]}:{where.lineno}"
        return what, number, traceback.format_exc(limit=-6)[-2_000:]
    finally:
        signal.alarm(0)
    return None


def _hangs(_signal, _frame):
    raise Broken("a draw hangs")


if __name__ == "__main__":
    sys.exit(main())

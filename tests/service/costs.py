"""What an action costs, by what does not depend on the machine."""

import gc
import sys

import numpy as np


def calls_of(action):
    """Return how many functions are called, ours and Python's own."""
    calls = []
    gc.disable()  # what it frees of others may call, too
    sys.setprofile(lambda _frame, event, _of: calls.append(event) if event.endswith("call") else None)
    try:
        action()
    finally:
        sys.setprofile(None)
        gc.enable()
    return len(calls)


def lines_of(action):
    """Return how many lines of Python are executed: a loop over many things shows, whatever it calls."""
    lines = []

    def trace(_frame, event, _of):
        if event == "line":
            lines.append(event)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return len(lines)


def elements_of(monkeypatch, names, action):
    """Return how long the first arguments of all calls of numpy's functions of these names are together."""
    lengths = []

    def counted(function):
        def call(*args, **more):
            lengths.append(len(args[0]) if np.ndim(args[0]) else 1)
            return function(*args, **more)

        return call

    with monkeypatch.context() as patched:
        for name in names:
            patched.setattr(np, name, counted(getattr(np, name)))
        action()
    return sum(lengths)

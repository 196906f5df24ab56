"""Write down what is decided, to compare after a change that should change no decision.

`python -m tests.golden DIRECTORY` writes scenes of the release loop (what it writes, what it says of who waits) and
what the simulator makes of workloads; `diff -r` compares two of them. Names of fields and classes do not count.
With `DIRECTORY scenes` it writes only the scenes.
"""

import dataclasses
import enum
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import structlog

from extender.explain.advice import changes_for
from extender.explain.pod import explain
from extender.explain.pod_in_plan import case_of
from extender.explain.queues import queue_states
from tests.fuzz.broken import Broken
from tests.fuzz.churn import Cluster

SCENES, MOST_EXPLAINED = 160, 6

COMMANDS = {
    "simulate": (
        "simulate",
        "--workload",
        "suite:jobs=12",
        "--machines",
        "tetris:30",
        "--policy",
        "tetris,paper,srtf,drf,capacity",
    ),
    "order": ("bench", "order", "--quick"),
    "delay": ("experiment", "delay", "--quick"),
    "tetris": ("experiment", "tetris", "--quick"),
}


def values(thing):
    """Return what a thing holds as lists and plain values, without the names of its fields."""
    match thing:
        case enum.Enum():
            return values(thing.value)
        case np.ndarray():
            return values(thing.tolist())
        case _ if dataclasses.is_dataclass(thing):
            return [values(getattr(thing, field.name)) for field in dataclasses.fields(thing)]
        case dict():
            return {str(name): values(value) for name, value in thing.items()}
        case set() | frozenset():
            return sorted(map(str, thing))
        case list() | tuple():
            return [values(value) for value in thing]
        case np.generic():
            return thing.item()
    return thing


def scene(number):
    """Return what one random scene of trouble comes to."""
    cluster = Cluster(
        random.Random(number), 2 + number % 12, calm=number % 3 == 0, inputs=None if number % 3 else False
    )
    try:
        cluster.play()
        seen = [values(queue_states(cluster.view()))]
        waiting = sorted(
            (pod for real in cluster.pods.values() if (pod := cluster.backlog.pod(real.uid)) and pod.waits),
            key=lambda pod: pod.name,
        )
        for pod in waiting[:MOST_EXPLAINED]:
            view = cluster.view()
            case = case_of(view, pod)
            advice = changes_for(case, view.why.get(pod.uid)) if pod.held else []
            seen.append([pod.name, values(explain(view, pod, cluster.policy, advice))])
        cluster.heal()
        broken = ""
    except Broken as fault:
        broken, seen = fault.what, []
    told = {"written": values(cluster.written), "told": values(cluster.told), "seen": seen}
    return {"scene": number, "broken": broken, **told}


def main():
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    to = Path(sys.argv[1])
    to.mkdir(parents=True)
    with (to / "scenes.jsonl").open("w") as file:
        for number in range(SCENES):
            file.write(json.dumps(scene(number), default=str) + "\n")
    commands = {} if sys.argv[2:] == ["scenes"] else COMMANDS
    for name, command in commands.items():
        printed = subprocess.run(
            [sys.executable, "-m", "extender", *command, "--json"], capture_output=True, check=True
        )
        (to / f"{name}.json").write_bytes(printed.stdout)


if __name__ == "__main__":
    main()

"""Which queues have a fair share, and that a plan leaves out the pods of the others."""

import random

import numpy as np
import pytest

from extender.planner.gangs import Gangs
from extender.planner.misfits import without_misfits
from tests.service.control.scene import Scene, node, pod


@pytest.mark.parametrize("seed", range(30))
def test_a_queue_that_holds_nothing_claims_a_share_if_and_only_if_a_plan_counts_one_of_its_pods(seed):
    draw = random.Random(seed)
    scene = Scene(*(node(f"n{number}", cpu=draw.choice((300, 600, 1000))) for number in range(draw.randint(1, 4))))
    for queue in ("a", "b", "c", "d"):
        for number in range(draw.randint(1, 4)):
            of_gang = {"group": f"default/{queue}", "least": draw.randint(2, 4)} if draw.random() < 0.5 else {}
            scene.see(pod(f"{queue}{number}", draw.choice((200, 550, 900, 1001)), job=queue, queue=queue, **of_gang))
    snapshot, builder = scene.ledger.snapshot(scene.now), scene.input_builder()
    waiting = builder.build(snapshot, scene.now).waiting
    unreadable = np.zeros(len(waiting.count), dtype=np.bool_)
    left = without_misfits(waiting, Gangs(waiting), snapshot.empty, snapshot.layout.total, unreadable)
    queues = [waiting.jobs.queue_names[row] for row in waiting.jobs.queue[left.job].tolist()]
    counted = {queue for queue, count in zip(queues, left.count.tolist(), strict=True) if count}
    fair = {name: share for name, (_, share) in builder.usage(snapshot).by_queue().items()}
    assert {name for name, share in fair.items() if share} == counted

"""The second pass by predicted peaks: one node of 1,000 of CPU, full by what is requested, of which 300 is used."""

from dataclasses import replace

import numpy as np

from extender.control.idle_room.predicted import PredictedPeaks
from extender.control.idle_room.room import Thresholds
from extender.control.opportunistic.second_pass import OpportunisticLimits
from tests.service.control.opportunistic.idle_scene import IdleScene, needs, runs
from tests.service.control.scene import node


class AutoScene(IdleScene):
    """`peak` is the predicted CPU of each node, None: there is no prediction; it has all that began up to `cutoff`."""

    peak, cutoff = 500.0, None

    def idle_terms(self):
        return replace(OpportunisticLimits(), thresholds=Thresholds(None), peaks=lambda: self.peaks(self.now))

    def peaks(self, now):
        if self.peak is None:
            return None
        layout = self.cluster.snapshot().layout
        peak = np.zeros(layout.capacity.shape)
        peak[:, layout.columns["cpu"]] = self.peak
        return PredictedPeaks(layout, peak, now, now if self.cutoff is None else self.cutoff, 1, 5.0)


def full(*waiting):
    scene = AutoScene(node("n1"), use={"n1": 300})
    scene.see(runs("full", 1000), *waiting)
    return scene


def test_what_the_predicted_peak_leaves_is_given():
    scene = full(*(needs(f"a{n}", 200) for n in range(5)))
    scene.step()
    scene.step(1)
    assert len(scene.on_idle_room()) == 2  # 1,000 - 500


def test_without_a_prediction_nothing_is():
    scene = full(needs("a", 10))
    scene.peak = None
    scene.step()
    assert scene.on_idle_room() == {}
    scene.peak = 500.0
    scene.step(1)
    assert scene.on_idle_room() == {"a": "n1"}


def test_a_regular_pod_that_began_after_the_prediction_counts_in_full_beside_it():
    # It is old by the measurement, and in no peak: 1,000 - 500 - 400 leaves 100.
    scene = full(needs("a", 200), needs("b", 100))
    scene.see(runs("new", 400, started=scene.now - 60.0))
    scene.cutoff = scene.now - 90.0
    scene.step()
    assert scene.on_idle_room() == {"b": "n1"}
    scene.cutoff = scene.now - 60.0
    scene.step(1)
    assert "a" in scene.on_idle_room()

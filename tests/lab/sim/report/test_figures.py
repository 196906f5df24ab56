"""What the plots of runs are drawn of."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from lab.sim.engine.measures import Series
from lab.sim.report.figures import draw_running, draw_use


@pytest.fixture
def panels():
    return list(Figure().subplots(1, 2))


def a_run(until, *demanded):
    """Return a run from 100 to this time, in which this part of cpu and of memory is wanted."""
    none, use = np.zeros(2, dtype=np.int64), np.tile(demanded, (2, 1))
    return Series(np.array([100.0, until]), none, none, use, use, use, np.zeros((2, 0)))


def test_time_is_in_seconds_since_the_first_as_in_the_table(panels):
    draw_running(panels[0], {"stock": a_run(160.0, 1.0, 0.5)})
    assert panels[0].get_lines()[0].get_xdata().tolist() == [0.0, 60.0]


def test_the_names_of_what_is_wanted_in_any_run_stand_above_the_panels_and_hide_nothing(panels):
    draw_use(panels, {"stock": a_run(160.0, 1.0, 0.0), "ours": a_run(130.0, 1.0, 0.5)}, ("cpu", "memory"))
    (legend,) = panels[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["cpu", "memory"]
    assert [axes.get_legend() for axes in panels] == [None, None]
    assert [axes.get_xlim() for axes in panels] == [(0.0, 60.0)] * 2

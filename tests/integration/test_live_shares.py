"""Queues keep their shares on a real control plane once everything that waits is older than any bound."""

import pytest

from lab.bench.order.live import LiveCase, shares_of, watch_on
from lab.controlplane.launches import CONTROL, EXTENDER, SCHEDULER

_AFTER_SECONDS = 15.0

_IN_USE = 40
"""At least so many percent of the slots are full: there is something to share. How many are hangs on the machine."""


@pytest.fixture
def plane(control_plane):
    """Return the control plane; what is started on it is stopped after the test."""
    yield control_plane
    for name in (CONTROL, SCHEDULER, EXTENDER):
        control_plane.remove_scheduler(name)


@pytest.mark.parametrize("order", ["auto", "gates", "filter"])
def test_queues_keep_their_shares_when_every_pod_is_past_its_age(plane, tell, order):
    # Tasks of 4 to 10 s, due from 2 s on; weights 3 and 1 on 32 slots: 24 and 8.
    case = LiveCase(80, nodes=4, seconds=(4.0, 10.0), order=order, more={"policy": {"starvedAfterSeconds": 2}})
    looks = watch_on(plane, case, 32.0, lambda _look: None)
    found = shares_of(case, looks, after=_AFTER_SECONDS)
    oldest = max(seconds for look in looks for seconds in look.oldest.values())
    tell(
        f"shares {found.error:.1f} points from fair, {found.in_use:.0f} % of slots in use, oldest waited {oldest:.0f} s"
    )
    assert oldest > 15
    assert found.error <= 6
    assert found.in_use >= _IN_USE

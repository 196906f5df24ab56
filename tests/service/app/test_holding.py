"""Which parts `order: auto` has, and where pods are held at any time."""

import pytest

from extender.app.holding import always_held, ender_of
from extender.settings import parse

HEAD = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration"}


class Api:
    def apart(self, seconds):
        return self


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"reclaim": {"fairShareSeconds": 5}}, "reclaim acts for held pods alone"),
        ({"reclaim": {"minimumShareSeconds": 0.5}}, "reclaim acts for held pods alone"),
        (
            {"opportunistic": {"enabled": True}, "usage": {"metricsApi": True}},
            "only held pods start on what others do not use",
        ),
    ],
)
def test_pods_are_held_at_any_time_where_something_acts_for_held_pods_alone(changes, why):
    assert always_held(parse({**HEAD, "order": "auto", **changes})) == why


@pytest.mark.parametrize(("order", "there"), [("auto", True), ("gates", False), ("filter", False)])
def test_serve_ends_the_holding_of_pods_with_auto_alone(order, there):
    assert (ender_of(parse({**HEAD, "order": order}), Api(), lambda: None) is not None) is there

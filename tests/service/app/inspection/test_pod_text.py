"""What `dovetail explain pod` prints for people."""

import pytest

from extender.app.inspection.pod_text import pod_text
from extender.explain.pod import Explanation
from extender.planner import WaitLeft


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        (
            WaitLeft("rack level", 5.0, 1.2, stays=True),
            "rack level in 4 s (its job has been passed over for 1 of 5 s)",
        ),
        (
            WaitLeft("anywhere", 2.5, 2.0, stays=False),
            "anywhere in 0.5 s, if it is passed over all that time (its job has been passed over for 2 of 2.5 s)",
        ),
    ],
)
def test_what_is_left_of_a_wait_is_said_in_seconds(wait, said):
    found = Explanation("d/a", "held", 3.0, {}, 0, "s", wait=wait)
    text = " ".join(pod_text(found).split())
    assert f"Its wait {said} Priority 0" in text

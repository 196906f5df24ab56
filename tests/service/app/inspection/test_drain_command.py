"""What `dovetail drain` asks and says; what it does is tested in tests/control and on a real API server."""

import pytest
from click.testing import CliRunner

from extender.app.inspection.drain import has_done, words_after, words_before, would_do
from extender.cli import cli
from extender.control.drain import Drained, GatedPod, SeenOfOurs

OURS = frozenset({"dovetail"})


def drained(**more):
    found = {"policies": ("gating",), "bindings": ("gating",), "gates": 3, "nominations": 1, "left": {}, "waiting": 0}
    return Drained(**(found | more))


def test_it_asks_before_it_does_anything(tmp_path):
    done = CliRunner().invoke(cli, ["drain", "--kubeconfig", str(tmp_path / "missing")], input="n\n")

    assert done.exit_code == 1
    assert "releases all pods that Dovetail holds" in done.output
    assert done.exception.__class__ is SystemExit  # it has not looked for the file


def test_what_was_done_is_counted():
    assert words_after(drained(), OURS) == [
        "admission policies removed      gating",
        "gates removed                   3",
        "nominations cleared             1",
        "No pod is held.",
    ]


def test_pods_that_wait_for_a_scheduler_that_goes_away_are_named():
    told = "\n".join(words_after(drained(waiting=2), frozenset({"packed", "dovetail"})))

    assert "pods that wait for dovetail or packed: 2. If that scheduler is removed too, nobody places them" in told


def test_of_many_pods_that_are_left_ten_are_shown_with_the_reason():
    told = words_after(drained(left={f"default/pod-{n}": "refused" for n in range(12)}), OURS)

    assert "pods that still carry something of ours: 12" in told
    assert sum(": refused" in line for line in told) == 10
    assert told[-2:] == ["  and 2 more", "Run it again once the reason is gone."]


def test_pods_that_go_on_without_their_requests_and_new_ones_with_the_gate_are_said():
    told = words_after(drained(without_requests={"default/a": "exceeded quota"}, since=2), OURS)

    assert told[-4:] == [
        "pods that go on without their requests: 1",
        "  default/a: exceeded quota",
        "new pods that carry the gate: 2. No policy gives it to them any more: take it out of their templates,",
        "  and run this again.",
    ]


def test_a_dry_run_says_what_would_be_done_and_that_nothing_was():
    held = (GatedPod("default", "a", True, None, False), GatedPod("default", "b", False, "node-1", True))
    seen = SeenOfOurs(("gating",), ("gating",), held, waiting=0, opportunistic=2)

    assert words_before(seen, OURS) == [
        "admission policies to remove    gating",
        "gates to remove                 1",
        "nominations to clear            1",
        "opportunistic pods to take back 2",
        "Nothing was changed.",
    ]
    assert would_do(seen)["dryRun"] is True
    assert (would_do(seen)["gates"], would_do(seen)["nominations"], would_do(seen)["opportunistic"]) == (1, 1, 2)


def test_machines_are_told_what_is_left():
    told = has_done(drained(left={"default/a": "refused"}, without_requests={"default/b": "quota"}, since=2))
    assert told["left"] == {"default/a": "refused"}
    assert (told["withoutRequests"], told["createdSince"]) == ({"default/b": "quota"}, 2)


@pytest.mark.parametrize("how", ["env", "option"])
def test_the_cluster_is_that_of_the_users_kubeconfig(tmp_path, how):
    file = str(tmp_path / "mine")
    option, env = ([f"--kubeconfig={file}"], {}) if how == "option" else ([], {"KUBECONFIG": file})
    done = CliRunner().invoke(cli, ["drain", "--yes", *option], env=env)

    assert str(done.exception).startswith(f"{file} is not a kubeconfig")

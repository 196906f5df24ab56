"""Pods go where their volumes are, and it does not matter in which order that becomes known."""

import pytest

from extender.cluster.eligibility import Requirement
from extender.cluster.events import (
    ClaimGone,
    ClaimSeen,
    ClaimsListed,
    PodsListed,
    VolumeGone,
    VolumeSeen,
    VolumesListed,
)
from extender.cluster.model import Claim, Volume
from extender.control.backlog.volumes import Volumes
from extender.control.plan_input.builder import PlanInputBuilder
from extender.planner import Policy
from tests.service.control.scene import Scene, node, pod

BARRED = "node selector, affinity, taints, cordons or volumes"


def on(*names):
    """Return the affinity of a volume that can be used on these nodes."""
    return ((Requirement("host", "In", names),),)


def scene(**cpu):
    """Return a scene with nodes of so much CPU, labelled with their names."""
    return Scene(*(node(name, amount, labels={"host": name}) for name, amount in cpu.items()))


def bind(at, claim, volume, *nodes):
    at.apply(ClaimSeen(Claim(f"default/{claim}", volume)))
    at.apply(VolumeSeen(Volume(volume, on(*nodes) if nodes else None)))


def user(name, *claims, **more):
    return pod(name, claims=tuple(f"default/{claim}" for claim in claims), **more)


def classes(at):
    return sorted(it.unfinished for it in at.backlog.classes())


def test_a_pod_goes_to_the_node_of_its_volume_though_another_has_more_room():
    at = scene(small=200, large=1000)
    at.see(pod("free"))
    at.step()
    assert at.nominated() == {"free": "large"}
    bind(at, "data", "pv", "small")
    at.see(user("a", "data"))
    at.step()
    assert at.nominated() == {"free": "large", "a": "small"}


EVENTS = {
    "pod": lambda at: at.see(user("a", "data")),
    "claim": lambda at: at.apply(ClaimSeen(Claim("default/data", "pv"))),
    "volume": lambda at: at.apply(VolumeSeen(Volume("pv", on("small")))),
}


@pytest.mark.parametrize("order", ["pod claim volume", "pod volume claim", "claim pod volume", "volume claim pod"])
def test_it_does_not_matter_in_which_order_the_news_comes(order):
    at = scene(small=200, large=1000)
    for event in order.split():
        EVENTS[event](at)
    at.step()
    assert at.nominated() == {"a": "small"}


def test_what_is_not_bound_or_not_known_or_can_be_used_anywhere_demands_nothing():
    at = scene(small=200, large=1000)
    at.apply(ClaimSeen(Claim("default/unbound")))
    at.apply(ClaimSeen(Claim("default/lost", "not-there")))
    bind(at, "network", "nfs")
    at.see(*(user(name, name) for name in ("unknown", "unbound", "lost", "network")))
    at.step()
    assert set(at.nominated().values()) == {"large"}
    assert len(at.nominated()) == 4


def test_all_volumes_must_allow_the_node():
    at = scene(n1=1000, n2=1000, n3=1000)
    bind(at, "left", "pv-1", "n1", "n2")
    bind(at, "right", "pv-2", "n2", "n3")
    bind(at, "far", "pv-3", "n3")
    at.see(user("both", "left", "right"), user("torn", "left", "far"))
    at.step()
    assert at.nominated() == {"both": "n2"}
    assert at.why()["torn"].text == f"no node allows it: {BARRED}"


def test_a_pod_whose_volume_is_on_a_full_node_is_held_while_others_have_room():
    at = scene(n1=100, n2=1000)
    bind(at, "data", "pv", "n1")
    at.see(pod("runs", 100, gates=(), node="n1"), user("a", "data"))
    at.step()
    assert at.released() == []
    said = f"the nodes with room do not allow it: {BARRED}; on those that do, mostly cpu is short"
    assert (at.why()["a"].kind, at.why()["a"].text) == ("no-room", said)


def test_when_its_claim_or_volume_goes_a_pod_may_go_anywhere():
    for gone in (ClaimGone("default/data"), VolumeGone("pv"), ClaimsListed([]), VolumesListed([])):
        at = scene(small=200, large=1000)
        bind(at, "data", "pv", "small")
        at.see(user("a", "data"))
        at.apply(gone)
        at.step()
        assert at.nominated() == {"a": "large"}


def test_lists_say_all_that_there_is():
    at = scene(small=200, middle=500, large=1000)
    bind(at, "data", "old", "large")
    at.see(user("a", "data"))
    at.apply(VolumesListed([Volume("new", on("small")), Volume("old", on("large"))]))
    at.apply(ClaimsListed([Claim("default/data", "new")]))
    at.apply(VolumeSeen(Volume("old", on("middle"))))
    at.step()
    assert at.nominated() == {"a": "small"}


def test_pods_whose_volumes_are_at_the_same_place_are_one_class():
    at = scene(n1=1000, n2=1000)
    places = ("n1", "n1", "n2", None, None)
    for number, place in enumerate(places):
        bind(at, f"data-{number}", f"pv-{number}", *([place] if place else []))
    at.see(*(user(f"a{number}", f"data-{number}", job="j") for number in range(5)), pod("plain", job="j"))
    assert classes(at) == [1, 2, 3]  # on n2; on n1; anywhere, with the one that has no volume
    at.see(user("two", "data-0", "data-1", job="j"))
    assert classes(at) == [1, 3, 3]


def test_who_was_created_first_goes_first_though_its_volume_was_heard_of_late():
    at = scene(n1=100)
    at.see(*(user(f"a{number}", f"data-{number}", job="j", created=float(number)) for number in range(3)))
    volumes = [Volume(f"pv-{number}", on("n1")) for number in range(3)]
    at.apply(VolumesListed(volumes))
    at.apply(ClaimsListed([Claim(f"default/data-{number}", f"pv-{number}") for number in (2, 1, 0)]))
    at.step()
    assert at.released() == ["a0"]


def test_news_of_volumes_that_say_nothing_new_changes_no_plan():
    at = scene(n1=1000)
    bind(at, "data", "pv", "n1")
    at.see(user("a", "data"))
    before = at.backlog.changes
    bind(at, "data", "pv", "n1")
    bind(at, "of-nobody", "pv-2", "n1")
    at.apply(VolumesListed([Volume("pv", on("n1"))]))
    assert at.backlog.changes == before
    assert classes(at) == [1]


def test_a_nomination_is_taken_back_where_the_volume_turns_out_to_be_elsewhere():
    at = scene(small=200, large=1000)
    at.refuse.add(("release", "a"))
    at.see(user("a", "data"))
    at.step()
    assert at.nominated() == {"a": "large"}
    bind(at, "data", "pv", "small")
    at.refuse.clear()
    for _ in range(4):
        at.step(20.0)
    assert at.told_to("clear") == [("clear", "a")]
    assert at.nominated() == {"a": "small"}
    assert at.released() == ["a"]


def test_a_bound_pod_stays_in_the_class_in_which_it_waited_and_that_learns_from_it():
    at = scene(n1=1000)
    at.see(user("a", "data", job="j"), user("b", "other", job="j"))
    ((of, _), (same, _)) = (at.backlog.find(f"uid-{name}") for name in "ab")
    assert of is same
    at.change("a", gates=(), node="n1", started=at.now)
    bind(at, "data", "pv", "n1")  # as kube-scheduler does with WaitForFirstConsumer
    at.change("a")
    assert at.backlog.find("uid-a")[0] is of
    at.now += 30.0
    at.end("a")
    assert of.seconds(0.0, 130.0) == 30.0


def test_a_pod_bound_to_its_node_stays_with_those_of_its_volumes_place():
    at = scene(n1=1000)
    bind(at, "data", "pv", "n1")
    at.see(user("a", "data", job="j"), pod("plain", job="j"))
    before = at.backlog.find("uid-a")[0]
    at.change("a", gates=(), node="n1")
    at.apply(PodsListed(list(at.pods.values())))
    assert at.backlog.find("uid-a")[0] is before
    assert before is not at.backlog.find("uid-plain")[0]


def test_who_left_is_not_placed_again():
    at = scene(n1=1000)
    at.see(user("a", "data"))
    at.remove("a")
    bind(at, "data", "pv", "n1")
    assert at.backlog.classes() == []


def test_nothing_is_kept_of_what_is_gone():
    found, a = Volumes(), user("a", "data")
    found.use(a)
    found.apply(ClaimSeen(Claim("default/data", "old")))
    found.apply(ClaimSeen(Claim("default/data", "pv")))
    assert found.apply(VolumeSeen(Volume("pv", on("n1")))) == {"uid-a"}
    found.leave(a)
    assert found.apply(VolumeGone("pv")) == set()
    found.apply(ClaimGone("default/data"))
    assert not any(vars(found).values())


def test_a_class_has_the_same_name_after_a_restart_whatever_was_heard_first():
    names = []
    for order in ("pod claim volume", "volume claim pod"):
        at = scene(n1=1000)
        for event in order.split():
            EVENTS[event](at)
        names += [it.name for it in at.backlog.classes()]
    assert names[0] == names[1]


def test_a_class_that_is_free_again_has_the_name_of_one_that_always_was():
    at = scene(n1=1000)
    plain = user("a", "data")
    at.see(plain)
    (before,) = (it.name for it in at.backlog.classes())
    bind(at, "data", "pv", "n1")
    at.apply(ClaimGone("default/data"))
    (after,) = (it.name for it in at.backlog.classes())
    assert before == after


def test_near_its_local_volumes_is_the_one_node_that_all_of_them_allow_whatever_else_bars_it():
    names = ("n1", "n2", "n3")
    at = Scene(*(node(name, labels={"host": name}, unschedulable=name == "n1") for name in names))
    bind(at, "data", "pv", "n1", "n2")
    bind(at, "network", "nfs")
    bind(at, "everywhere", "pv-2", *names)
    prefers = ((1, (Requirement("host", "In", ("n3",)),)),)
    at.see(
        user("a", "data", "network"),
        user("b", "network"),
        user("c", "everywhere"),
        user("d", "data", prefers=prefers),
        user("e", "data", inputs=(("n3", 1.0),)),
    )
    input_builder, layout = PlanInputBuilder(at.backlog, (), starved_after=120.0), at.ledger.snapshot(0.0).layout

    def far(name):
        found = input_builder.preferred_nodes.of_pod(at.backlog.pod(f"uid-{name}"), layout)
        return None if found is None else found.tolist()

    assert input_builder.allowed_nodes.allowed(at.backlog.pod("uid-a"), layout).tolist() == [False, True, False]
    assert far("a") is None  # of a disk that two nodes can use none is the place
    assert far("b") is None  # no volume says where
    assert far("c") is None  # all nodes are alike
    assert far("d") is None  # where it would rather be its volume cannot be used
    assert far("e") == [1, 1, 0]  # what it reads goes before
    bind(at, "data", "pv", "n1")
    assert far("a") == [0, 1, 1]  # cordoned, but there it is


def test_a_start_beside_its_volume_is_a_start_near_its_input():
    at = scene(n1=200, n2=1000)
    bind(at, "data", "pv", "n1")
    at.see(user("a", "data"))
    at.step()
    assert at.nominated() == {"a": "n1"}
    assert at.levels["a"] == ("node", 0.0)


def test_who_waits_for_its_volumes_node_is_not_said_to_wait_for_locality():
    policy = Policy(locality_waits=(5.0,))
    at = Scene(*(node(name, 100, labels={"host": name}) for name in ("n1", "n2")), policy=policy)
    bind(at, "data", "pv", "n1")
    at.see(pod("runs", 100, gates=(), node="n1"), user("a", "data"))
    for _ in range(3):
        at.step(4.0)
    assert at.released() == []
    assert at.why()["a"].kind == "no-room"

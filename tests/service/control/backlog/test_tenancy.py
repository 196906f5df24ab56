"""Which queue a pod counts in: what it names, where it may, else its namespace's own."""

import dataclasses

import pytest

from extender.cluster.events import NamespaceGone, NamespaceSeen, NamespacesListed
from extender.cluster.pods.identity import Identity
from extender.cluster.queues import Queue
from extender.control.backlog.tenancy import Tenancy, problem_of
from tests.service.control.scene import Scene, node, pod

QUEUES = (
    Queue("open"),
    Queue("lab", namespaces=("lab-a", "lab-b")),
    Queue("sales", namespaces={"team": "sales"}),
    Queue("nobody", namespaces=()),
)


def of(namespace, named="", name="p"):
    """Return a pod of a namespace that names a queue."""
    identity = Identity(job=name, queue=named or namespace, named=named)
    return dataclasses.replace(pod(name), namespace=namespace, identity=identity)


@pytest.fixture
def tenancy():
    found = Tenancy(QUEUES)
    found.apply(NamespacesListed({"shop": {"team": "sales"}, "lab-a": {"team": "research"}}))
    return found


@pytest.mark.parametrize(
    ("namespace", "named", "queue"),
    [
        ("web", "", "web"),
        ("web", "open", "open"),
        ("lab-a", "lab", "lab"),
        ("web", "lab", "web"),
        ("shop", "sales", "sales"),
        ("lab-a", "sales", "lab-a"),
        ("unknown", "sales", "unknown"),
        ("web", "made-up", "web"),
        ("web", "nobody", "web"),
        ("lab", "", "lab (namespace)"),
        ("lab", "open", "open"),
        ("open", "", "open"),
    ],
)
def test_a_pod_counts_in_the_queue_that_it_names_where_its_namespace_may_use_it(tenancy, namespace, named, queue):
    assert tenancy.settle(of(namespace, named)).identity.queue == queue


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("made-up", "there is no queue made-up; it counts in web"),
        ("lab", "queue lab is not for the pod's namespace; it counts in web"),
        ("open", None),
        ("", None),
    ],
)
def test_who_names_a_queue_in_vain_is_told_so(tenancy, named, said):
    settled = tenancy.settle(of("web", named))
    assert (settled.queue_problem, settled.warning) == (said, said)


def test_a_pod_in_the_right_queue_stays_as_it_is(tenancy):
    it = of("web", "open")
    assert tenancy.settle(it) is it
    again = tenancy.settle(of("web", "made-up"))
    assert tenancy.settle(again) is again


CHOICES = (
    Queue("open", opportunistic="never"),
    Queue("lab", opportunistic="allowed"),
    Queue("below", parent="middle"),
    Queue("middle", parent="lab"),
    Queue("other", parent="middle", opportunistic="never"),
)


def labelled(text):
    return {"dovetail.dev/opportunistic": text}


@pytest.mark.parametrize(
    ("namespace", "queue", "choice"),
    [
        ("plain", "", None),
        ("plain", "open", "never"),
        ("plain", "lab", "allowed"),
        ("plain", "below", "allowed"),
        ("plain", "other", "never"),
        ("generous", "open", "allowed"),
        ("strict", "lab", "never"),
        ("broken", "lab", "never"),
        ("broken", "", "never"),
    ],
)
def test_a_namespace_chooses_for_its_pods_and_else_the_queue_or_the_nearest_above_it(namespace, queue, choice):
    tenancy = Tenancy(CHOICES)
    labels = {"generous": labelled("allowed"), "strict": labelled("never"), "broken": labelled("yes"), "plain": {}}
    tenancy.apply(NamespacesListed(labels))
    settled = tenancy.settle(of(namespace, queue))
    assert (settled.tenant_choice, settled.may_run) == (choice, choice)
    assert dataclasses.replace(settled, choice="only").may_run == "only"


def test_a_label_that_cannot_be_understood_is_named_with_what_is_accepted():
    assert problem_of(labelled("never")) is problem_of({}) is None
    said = "label dovetail.dev/opportunistic: 'yes'; accepted: allowed, never; until then none of its pods is made"
    assert problem_of(labelled("yes")).startswith(said)


def test_queues_that_are_above_each_other_choose_nothing_and_end():
    circle = (Queue("a", parent="b"), Queue("b", parent="a"))
    assert Tenancy(circle).settle(of("a", "b")).tenant_choice is None


def test_the_choice_of_a_namespace_counts_from_its_next_label_on():
    scene = Scene(node("n1"))
    scene.see(of("shop", name="a"))
    assert [it.template.may_run for it in scene.backlog.classes()] == [None]
    scene.apply(NamespaceSeen("shop", labelled("never")))
    assert [it.template.may_run for it in scene.backlog.classes()] == ["never"]
    scene.apply(NamespaceGone("shop"))
    assert [it.template.may_run for it in scene.backlog.classes()] == [None]


def test_pods_change_queues_with_the_labels_of_their_namespace():
    scene = Scene(node("n1"), queues=QUEUES)
    scene.see(of("shop", "sales", "a"), of("web", "open", "b"))

    def queues():
        return sorted(it.job.queue for it in scene.backlog.classes())

    assert queues() == ["open", "shop"]
    scene.apply(NamespaceSeen("shop", {"team": "sales"}))
    assert queues() == ["open", "sales"]
    assert scene.backlog.pod("uid-a").queue_problem is None
    scene.apply(NamespaceGone("shop"))
    assert queues() == ["open", "shop"]
    assert len(scene.backlog.jobs) == 2


def test_a_pod_that_names_no_queue_gets_into_that_of_its_namespace_once_the_label_is_known():
    # So it is at each start where pods are listed before namespaces.
    scene = Scene(node("n1"), queues=QUEUES)
    scene.see(of("sales", name="a"))
    assert [it.job.queue for it in scene.backlog.classes()] == ["sales (namespace)"]
    scene.apply(NamespacesListed({"sales": {"team": "sales"}}))
    assert [it.job.queue for it in scene.backlog.classes()] == ["sales"]


def test_made_up_names_of_queues_get_no_more_than_their_namespace_would():
    """Ten pods of one namespace in nine made-up queues and ten of another: five each of the ten that fit."""
    scene = Scene(node("n1"))
    scene.see(*(of("honest", name=f"a{number}") for number in range(10)))
    scene.see(*(of("tenant", f"made-up-{number % 9}", name=f"b{number}") for number in range(10)))
    scene.step()
    assert sorted(name[0] for name in scene.released()) == ["a"] * 5 + ["b"] * 5

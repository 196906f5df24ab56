"""Which nodes a pod may go to: each row by Kubernetes' rules."""

import pytest

from extender.cluster.eligibility import ANYWHERE, Constraints, Requirement, Taint, Toleration


def allow(constraints, labels=None, taints=(), *, unschedulable=False):
    return constraints.allow("n1", labels or {}, tuple(taints), unschedulable=unschedulable)


def test_a_pod_without_constraints_goes_to_any_node_that_is_not_tainted_or_cordoned():
    assert allow(ANYWHERE)
    assert not allow(ANYWHERE, taints=[Taint("gpu", "", "NoSchedule")])
    assert not allow(ANYWHERE, taints=[Taint("gpu", "", "NoExecute")])
    assert allow(ANYWHERE, taints=[Taint("gpu", "", "PreferNoSchedule")])
    assert not allow(ANYWHERE, unschedulable=True)


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        (Toleration("gpu", "Equal", "yes"), True),
        (Toleration("gpu", "Equal", "no"), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("", "Equal", "yes"), False),
        (Toleration("gpu", "Exists", "", "NoExecute"), False),
        (Toleration("disk", "Exists"), False),
    ],
)
def test_a_toleration_lets_a_pod_onto_a_tainted_node(toleration, tolerates):
    taint = Taint("gpu", "yes", "NoSchedule")
    assert allow(Constraints(tolerations=(toleration,)), taints=[taint]) == tolerates


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        (Toleration("sla", "Gt", "900"), True),
        (Toleration("sla", "Gt", "950"), False),
        (Toleration("sla", "Lt", "950"), False),
        (Toleration("sla", "Lt", "951"), True),
        (Toleration("sla", "Gt", "many"), False),
        (Toleration("gpu", "Gt", "900"), False),
        (Toleration("sla", "Near", "950"), False),
    ],
)
def test_a_toleration_may_compare_numbers_and_one_of_an_unknown_operator_tolerates_nothing(toleration, tolerates):
    assert toleration.tolerates(Taint("sla", "950", "NoSchedule")) == tolerates


def test_a_cordon_is_tolerated_by_its_own_taint():
    assert allow(
        Constraints(tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists"),)), unschedulable=True
    )


def test_every_label_of_the_selector_must_be_there():
    constraints = Constraints(selector=(("disk", "ssd"), ("zone", "a")))
    assert allow(constraints, {"disk": "ssd", "zone": "a", "more": "x"})
    assert not allow(constraints, {"disk": "ssd"})


@pytest.mark.parametrize(
    ("requirement", "met"),
    [
        (Requirement("zone", "In", ("a", "b")), True),
        (Requirement("zone", "NotIn", ("a", "b")), False),
        (Requirement("rack", "NotIn", ("a",)), True),
        (Requirement("zone", "Exists"), True),
        (Requirement("rack", "DoesNotExist"), True),
        (Requirement("cores", "Gt", ("8",)), True),
        (Requirement("cores", "Gt", ("+8",)), True),
        (Requirement("cores", "Gt", ("1_0",)), False),
        (Requirement("cores", "Gt", (" 8",)), False),
        (Requirement("cores", "Gt", ("-9" * 5_000,)), False),
        (Requirement("cores", "Gt", ("-9223372036854775809",)), False),
        (Requirement("cores", "Gt", ()), False),
        (Requirement("cores", "Gt", ("16",)), False),
        (Requirement("cores", "Lt", ("16",)), False),
        (Requirement("cores", "Lt", ("17",)), True),
        (Requirement("cores", "Gt", ("-9223372036854775808",)), True),
        (Requirement("cores", "Lt", ("9223372036854775807",)), True),
        (Requirement("cores", "Lt", ("9223372036854775808",)), False),
        (Requirement("zone", "Gt", ("8",)), False),
        (Requirement("metadata.name", "In", ("n1",), field=True), True),
        (Requirement("metadata.name", "In", ("n2",), field=True), False),
        (Requirement("zone", "Like", ("a",)), False),
    ],
)
def test_each_operator_of_node_affinity(requirement, met):
    assert allow(Constraints(terms=((requirement,),)), {"zone": "a", "cores": "16"}) == met


@pytest.mark.parametrize("cores", ["1_0", " 10", "\u0661\u0660", "99999999999999999999", "0" * 5000 + "10", ""])
def test_what_is_no_integer_of_64_bits_is_neither_greater_nor_less_as_for_kube_scheduler(cores):
    for operator in ("Gt", "Lt"):
        assert not allow(Constraints(terms=((Requirement("cores", operator, ("9",)),),)), {"cores": cores})
        assert not allow(Constraints(terms=((Requirement("cores", operator, (cores,)),),)), {"cores": "9"})
    assert allow(Constraints(terms=((Requirement("cores", "Gt", ("+09",)),),)), {"cores": "010"})


def test_one_term_is_enough_and_an_empty_term_is_none():
    a, b = Requirement("zone", "In", ("a",)), Requirement("zone", "In", ("b",))
    assert allow(Constraints(terms=((a,), (b,))), {"zone": "b"})
    assert not allow(Constraints(terms=((a, b),)), {"zone": "b"})
    assert not allow(Constraints(terms=((),)), {"zone": "b"})


def test_every_volume_must_allow_the_node_and_goes_by_its_labels_alone():
    in_a, on_n1 = (Requirement("zone", "In", ("a",)),), (Requirement("metadata.name", "In", ("n1",), field=True),)
    assert allow(Constraints(volumes=((in_a,),)), {"zone": "a"})
    assert not allow(Constraints(volumes=((in_a,),)), {"zone": "b"})
    in_b = (Requirement("zone", "In", ("b",)),)
    assert allow(Constraints(volumes=((in_a, in_b),)), {"zone": "b"})  # one volume, usable in two zones
    assert not allow(Constraints(volumes=((in_a,), (in_b,))), {"zone": "b"})  # two volumes, one in each
    assert allow(Constraints(terms=(on_n1,)))
    assert not allow(Constraints(volumes=((on_n1,),)))  # as with kube-scheduler

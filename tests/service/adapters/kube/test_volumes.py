"""Claims, volumes and who uses them, as Kubernetes tells of them."""

import json

import msgspec
import pytest

from extender.adapters.kube.volumes import claims, volumes
from extender.cluster.eligibility import Requirement
from extender.cluster.events import ClaimGone, ClaimSeen, ClaimsListed, VolumeGone, VolumeSeen, VolumesListed
from extender.cluster.model import Claim, Volume
from tests.service.adapters.kube.test_decoding import pod_document, read_pod

HOSTNAME = "kubernetes.io/hostname"


def raw(**document):
    return msgspec.Raw(json.dumps(document).encode())


def volume(name, affinity=None):
    return raw(metadata={"name": name}, spec={"capacity": {"storage": "1Gi"}, "nodeAffinity": affinity})


def test_the_claims_of_a_pod_are_those_it_names_and_those_made_for_it_alone():
    spec = {
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "orders"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "kube-api-access", "projected": {"sources": []}},
        ]
    }
    assert read_pod(pod_document(spec=spec)).claims == ("shop/orders", "shop/web-scratch")
    assert read_pod(pod_document()).claims == ()


def test_a_claim_says_which_volume_it_is_bound_to():
    bound = raw(metadata={"name": "orders", "namespace": "shop"}, spec={"volumeName": "pv-1", "accessModes": []})
    unbound = raw(metadata={"name": "later", "namespace": "shop"}, spec={}, status={"phase": "Pending"})
    assert claims().listed([bound, unbound]) == ClaimsListed([Claim("shop/orders", "pv-1"), Claim("shop/later")])
    assert claims().seen(bound) == ClaimSeen(Claim("shop/orders", "pv-1"))
    assert claims().gone(bound) == ClaimGone("shop/orders")


def test_a_volume_says_on_which_nodes_it_can_be_used():
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n1"]}]}]
    local = volume("pv-1", {"required": {"nodeSelectorTerms": terms}})
    found = Volume("pv-1", ((Requirement(HOSTNAME, "In", ("n1",)),),))
    assert volumes().seen(local) == VolumeSeen(found)
    assert volumes().listed([local]) == VolumesListed([found])
    assert volumes().gone(local) == VolumeGone("pv-1")


@pytest.mark.parametrize("affinity", [None, {}, {"required": None}])
def test_a_volume_without_a_required_affinity_can_be_used_anywhere(affinity):
    assert volumes().seen(volume("pv-1", affinity)) == VolumeSeen(Volume("pv-1", None))

"""Pods that were made alike are read by what is known of the first: each still says what it says by itself."""

import copy
import json
import random

import msgspec
import pytest

from extender.adapters.kube.decoding import PodReader, pod_from
from extender.adapters.kube.objects import PodObject
from tests.fuzz import draws
from tests.service.adapters.kube.test_decoding import pod_document

_CANNOT_BE_READ = (msgspec.DecodeError, RecursionError)


def raw(document):
    return msgspec.Raw(json.dumps(document).encode())


def alone(document):
    return pod_from(msgspec.json.decode(raw(document), type=PodObject))


def changed(document, **meta):
    other = copy.deepcopy(document)
    other["metadata"] |= meta
    return other


def test_pods_of_one_template_share_what_is_worked_out():
    reader, document = PodReader(), pod_document(annotations={"dovetail.dev/demand": '{"disk-read": "10M"}'})
    one, other = (reader.read(raw(changed(document, uid=uid, name=uid))) for uid in ("u1", "u2"))
    assert (one.uid, other.uid) == ("u1", "u2")
    assert one.demand is other.demand


def test_a_pod_without_job_and_owner_is_a_job_of_its_own():
    reader = PodReader()
    jobs = [reader.read(raw(changed(pod_document(), uid=uid))).identity.job for uid in ("u1", "u2")]
    assert jobs == ["u1", "u2"]


def test_a_pod_that_is_bound_or_promised_a_node_is_of_the_same_template():
    reader, waiting = PodReader(), pod_document(annotations={"dovetail.dev/duration": "5"})
    bound = pod_document(spec={"nodeName": "n1"}, annotations={"dovetail.dev/duration": "5"})
    promised = pod_document(annotations={"dovetail.dev/duration": "5", "dovetail.dev/nominated": "n2"})
    pods = [reader.read(raw(document)) for document in (waiting, bound, promised)]
    assert [(pod.node, pod.promised) for pod in pods] == [(None, None), ("n1", None), (None, "n2")]
    assert pods[0].demand is pods[1].demand is pods[2].demand


@pytest.mark.parametrize("seed", range(150))
def test_a_reader_that_has_read_others_reads_a_pod_as_if_it_were_the_first(seed):
    draw, reader = random.Random(seed), PodReader()
    first = draws.pod(draw)
    # Whatever changes in a pod, also in what its template is made of, is read anew.
    for document in (first, *(draws.mutated(draw, copy.deepcopy(first)) for _ in range(12)), draws.pod(draw), first):
        try:
            expected = alone(document)
        except _CANNOT_BE_READ:
            with pytest.raises(_CANNOT_BE_READ):
                reader.read(raw(document))
        else:
            assert reader.read(raw(document)) == expected


def test_as_many_templates_are_kept_as_are_said():
    reader = PodReader(most=2)
    documents = [
        pod_document(spec={"containers": [{"resources": {"requests": {"cpu": str(cpu)}}}]}) for cpu in (1, 2, 3)
    ]
    first, _, last = (reader.read(raw(document)) for document in documents)
    assert reader.read(raw(documents[2])).demand is last.demand
    again = reader.read(raw(documents[0]))
    assert again == first
    assert again.demand is not first.demand


def test_a_template_of_much_text_is_not_kept():
    reader, document = PodReader(), pod_document(annotations={"dovetail.dev/input": "x" * 5_000})
    one, other = reader.read(raw(document)), reader.read(raw(document))
    assert one == other
    assert one.demand is not other.demand

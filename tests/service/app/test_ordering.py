"""What the order is made of depends on what may be read."""

import pytest

from extender.adapters.kube.api import Refused
from extender.app.ordering import POD_GROUPS, namespaces_of, optional_kinds, pod_groups_of, volumes_of
from extender.settings import Settings
from extender.settings.sections import QueueSetting

NAMESPACES = "/api/v1/namespaces"
CLAIMS, VOLUMES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes"


class Answers:
    """An API server that refuses these paths."""

    def __init__(self, **refused):
        self.refused = refused["refused"]
        self.calls, self.longest = [], None

    def apart(self, seconds):
        self.longest = seconds
        return self

    def read(self, path, _params):
        self.calls.append(path)
        if path in self.refused:
            raise Refused("refused", self.refused[path])
        return {}


def names(resources):
    return [it.name for it in resources]


def test_claims_and_volumes_are_read_where_both_may_be():
    assert names(volumes_of(Answers(refused={}))) == ["persistentvolumeclaims", "persistentvolumes"]


@pytest.mark.parametrize("path", [CLAIMS, VOLUMES])
def test_one_without_the_other_is_not_read(path):
    assert volumes_of(Answers(refused={path: 403})) == []


def test_an_order_does_not_end_with_the_watch_of_volumes():
    assert all(it.optional for it in volumes_of(Answers(refused={})))


def test_pod_groups_are_read_of_the_kinds_that_are_there():
    refused = {POD_GROUPS[0]: 404, POD_GROUPS[2]: 403}
    assert [it.path for it in pod_groups_of(Answers(refused=refused))] == [POD_GROUPS[1]]


def test_a_kind_that_answers_errors_is_asked_about_once_and_left_to_its_watch():
    api = Answers(refused={POD_GROUPS[0]: 404, POD_GROUPS[2]: 500, VOLUMES: 503})
    assert [it.path for it in optional_kinds(api, Settings())] == [POD_GROUPS[1], POD_GROUPS[2], CLAIMS, VOLUMES]
    assert api.calls == [*POD_GROUPS, CLAIMS, VOLUMES]
    assert api.longest == 5


@pytest.mark.parametrize(
    ("namespaces", "refused", "expected"),
    [(None, {}, []), (("shop",), {}, []), ({"team": "x"}, {}, ["namespaces"]), ({"team": "x"}, {NAMESPACES: 403}, [])],
)
def test_namespaces_are_followed_where_their_labels_are_asked_for_and_may_be_read(namespaces, refused, expected):
    settings = Settings(queues=(QueueSetting("q", namespaces=namespaces),))
    assert names(namespaces_of(settings, Answers(refused=refused))) == expected

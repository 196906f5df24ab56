"""What the order is made of depends on what may be read."""

import pytest

from extender.adapters.kube.api import Refused
from extender.app.ordering import (
    POD_GROUPS,
    control_asks_for_labels,
    optional_kinds,
    pod_groups_of,
    serve_asks_for_labels,
    volumes_of,
)
from extender.settings import Settings
from extender.settings.sections import OpportunisticSettings, QueueSetting

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
    assert [it.path for it in optional_kinds(api, labels=False)] == [POD_GROUPS[1], POD_GROUPS[2], CLAIMS, VOLUMES]
    assert api.calls == [*POD_GROUPS, CLAIMS, VOLUMES]
    assert api.longest == 5


@pytest.mark.parametrize(
    ("labels", "refused", "expected"),
    [(True, {}, ["namespaces"]), (True, {NAMESPACES: 403}, []), (False, {}, [])],
)
def test_namespaces_are_followed_where_their_labels_count_and_may_be_read(labels, refused, expected):
    kinds = names(optional_kinds(Answers(refused=refused), labels=labels))
    assert [name for name in kinds if name == "namespaces"] == expected


@pytest.mark.parametrize(
    ("namespaces", "opportunistic", "serve", "control"),
    [
        (None, False, False, False),
        (("shop",), False, False, False),
        ({"team": "x"}, False, True, True),
        (None, True, False, True),
    ],
)
def test_labels_of_namespaces_say_who_may_use_a_queue_and_to_control_who_may_be_opportunistic(
    namespaces, opportunistic, serve, control
):
    queue = QueueSetting("q", namespaces=namespaces)
    settings = Settings(queues=(queue,), opportunistic=OpportunisticSettings(enabled=opportunistic))
    assert (serve_asks_for_labels(settings), control_asks_for_labels(settings)) == (serve, control)

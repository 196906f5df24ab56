"""The Hold as it is read and written."""

import pytest

from extender.adapters.kube.api import Refused
from extender.adapters.kube.holding import HOLDS, ApiHold
from extender.cluster.hold import Hold
from extender.errors import ClusterError


class Api:
    """An API server with one Hold that counts versions, or without the kind."""

    def __init__(self):
        self.found, self.version, self.kind = None, 0, True

    def apart(self, seconds):
        assert seconds == 5.0
        return self

    def read(self, path):
        assert path == f"{HOLDS}/ns.control"
        if self.found is None:
            raise Refused("not found", 404)
        return self.found

    def post(self, path, body):
        if not self.kind:
            raise Refused("the server could not find the requested resource", 404)
        assert (path, body["metadata"]["name"]) == (HOLDS, "ns.control")
        self._store(body["spec"], body["metadata"]["labels"])

    def patch(self, path, body, content):
        assert (path, content) == (f"{HOLDS}/ns.control", "application/merge-patch+json")
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise Refused("conflict", 409)
        self._store({**self.found["spec"], **body["spec"]}, body["metadata"]["labels"])

    def _store(self, spec, labels):
        self.version += 1
        self.found = {"metadata": {"resourceVersion": str(self.version), "labels": labels}, "spec": spec}


@pytest.fixture
def api():
    return Api()


@pytest.fixture
def hold(api):
    return ApiHold(api, "ns.control")


def test_one_that_is_not_there_is_made(hold):
    assert hold.read() is None

    hold.write(Hold(held=True, why="somebody waits"), None)

    assert hold.read() == Hold(True, "somebody waits", "1")


@pytest.mark.parametrize(("since", "seconds"), [("1970-01-01T00:01:00Z", 60.0), ("", None), ("soon", None)])
def test_when_it_was_written_is_read_where_it_says_so(api, hold, since, seconds):
    api.found = {"metadata": {"resourceVersion": "1"}, "spec": {"held": True, "since": since}}
    assert hold.read().since == seconds


def test_the_policy_finds_it_by_its_labels_while_pods_are_held(api, hold):
    hold.write(Hold(held=True), None)
    assert api.found["metadata"]["labels"] == {"dovetail.dev/held": "true", "dovetail.dev/installed-in": "ns"}

    hold.write(Hold(held=False), hold.read())
    assert api.found["metadata"]["labels"] == {"dovetail.dev/held": "false", "dovetail.dev/installed-in": "ns"}


@pytest.mark.parametrize("labels", [{}, {"dovetail.dev/held": "false"}])
def test_one_that_the_policy_does_not_find_holds_nobody(api, hold, labels):
    api.found = {"metadata": {"resourceVersion": "1", "labels": labels}, "spec": {"held": True}}
    assert hold.read().held is False


def test_one_that_is_there_is_changed(hold):
    hold.write(Hold(held=True), None)

    hold.write(Hold(held=False, why="nobody waits"), hold.read())

    assert hold.read() == Hold(False, "nobody waits", "2")


def test_only_a_flip_has_a_new_date(api, hold):
    hold.write(Hold(held=False, why="nobody leads"), None)
    api.found["spec"]["since"] = "2020-01-01T00:00:00Z"

    hold.write(Hold(held=False, why="nobody waits"), hold.read())
    assert api.found["spec"] == {"held": False, "since": "2020-01-01T00:00:00Z", "why": "nobody waits"}
    hold.write(Hold(held=True, why="somebody waits"), hold.read())
    assert api.found["spec"]["since"] > "2026"


def test_one_that_another_has_changed_meanwhile_is_not(hold):
    hold.write(Hold(held=False), None)
    before = hold.read()
    hold.write(Hold(held=True), before)

    with pytest.raises(ClusterError, match="conflict"):
        hold.write(Hold(held=True), before)


def test_a_missing_kind_is_told_by_its_status(api, hold):
    api.kind = False

    with pytest.raises(ClusterError) as refused:
        hold.write(Hold(held=True), hold.read())
    assert refused.value.status == 404

"""The Lease as it is read and written."""

import pytest

from extender.adapters.kube.api import Refused
from extender.adapters.kube.leases import ApiLease
from extender.cluster.lease import Record
from extender.errors import ClusterError

ALL = "/apis/coordination.k8s.io/v1/namespaces/dovetail-system/leases"


class Api:
    """An API server with one Lease that counts versions and refuses a version that is not the newest."""

    def __init__(self):
        self.found, self.version, self.longest = None, 0, None

    def apart(self, seconds):
        self.longest = seconds
        return self

    def read(self, path):
        assert path == f"{ALL}/control"
        if self.found is None:
            raise Refused("not found", 404)
        return self.found

    def post(self, path, body):
        assert path == ALL
        if self.found is not None:
            raise Refused("exists", 409)
        self._store(body)

    def put(self, path, body):
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise Refused("conflict", 409)
        self._store(body)

    def _store(self, body):
        self.version += 1
        self.found = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}


@pytest.fixture
def api():
    return Api()


@pytest.fixture
def lease(api):
    return ApiLease(api, "dovetail-system", "control", 15.0)


@pytest.mark.usefixtures("lease")
def test_no_call_waits_for_long(api):
    assert api.longest == 2.0


def test_a_lease_that_is_not_there_is_made(lease):
    assert lease.read() is None
    assert lease.write("a", None) == Record("a", 15.0, "1", 0)
    assert lease.read() == Record("a", 15.0, "1", 0)


def test_renewing_keeps_when_it_was_acquired_out_and_a_new_holder_counts(api, lease):
    first = lease.write("a", None)
    again = lease.write("a", first)
    assert again.transitions == 0
    assert "acquireTime" not in api.found["spec"]
    assert lease.write("b", again).transitions == 1


def test_who_was_not_fast_enough_is_refused(lease):
    first = lease.write("a", None)
    lease.write("a", first)
    with pytest.raises(ClusterError):
        lease.write("b", first)
    with pytest.raises(ClusterError):
        lease.write("b", None)

"""Lists come page by page, and no more than one page of JSON is in memory at a time."""

import io
import json
import tracemalloc
from types import SimpleNamespace

import msgspec
import pytest

from extender.adapters.kube.watching import listed, pods
from extender.errors import AnswerTooLarge


class Pages:
    """An API server with so many pods of so many bytes, in pages."""

    def __init__(self, total, size, page):
        self.total, self.size, self.page, self.asked, self.limits = total, size, page, [], []

    def get(self, path, params=(), **_how):
        assert path == "/api/v1/pods"
        start = int(dict(params).get("continue", "0"))
        self.asked.append(start)
        self.limits.append(limit := int(dict(params)["limit"]))
        end = min(start + min(self.page, limit), self.total)
        metadata = {"resourceVersion": "9"} | ({"continue": str(end)} if end < self.total else {})
        answer = json.dumps({"metadata": metadata, "items": list(map(self.pod, range(start, end)))})
        return io.BytesIO(answer.encode())

    def pod(self, number):
        return {"metadata": {"name": f"p{number}", "namespace": "shop", "uid": f"u{number}"}, "pad": "x" * self.size}


def test_a_page_is_asked_for_when_its_objects_are_wanted():
    api = Pages(total=5, size=1, page=2)
    raws, version = listed(api, "/api/v1/pods")
    assert (version, api.asked) == ("9", [0])
    next(raws), next(raws)
    assert api.asked == [0]
    next(raws)
    assert api.asked == [0, 2]
    assert len([*raws]) == 2
    assert api.asked == [0, 2, 4]


def test_pages_that_are_too_large_are_asked_for_in_parts(monkeypatch):
    monkeypatch.setattr("extender.adapters.kube.api.MOST_BYTES", 100_000)  # nine such pods
    api = Pages(total=20, size=10_000, page=500)
    raws, _ = listed(api, "/api/v1/pods")
    assert len([*raws]) == 20
    assert api.limits == [500, 125, 31, 7, 7, 7]


def test_an_object_that_is_too_large_by_itself_is_said(monkeypatch):
    monkeypatch.setattr("extender.adapters.kube.api.MOST_BYTES", 9_000)
    with pytest.raises(AnswerTooLarge, match="larger than 9,000 bytes"):
        listed(Pages(total=1, size=10_000, page=500), "/api/v1/pods")


def test_an_empty_list_has_no_objects():
    assert [*listed(Pages(0, 1, 2), "/api/v1/pods")[0]] == []


def test_a_list_needs_memory_for_its_pods_and_one_page():
    api = Pages(total=4_000, size=16_000, page=100)  # 64 MB in all, 1.6 MB a page
    tracemalloc.start()
    try:
        event = pods().listed(listed(api, "/api/v1/pods")[0])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [pod.name for pod in event.pods] == [f"p{number}" for number in range(4_000)]
    assert peak < 16e6  # a few pages while one is made, and 4,000 pods of some 1.5 kB


@pytest.mark.parametrize("answer", ["{}", '{"metadata": {}}', '{"items": []}'])
def test_an_answer_that_is_no_list_is_not_taken_for_an_empty_one(answer):
    api = SimpleNamespace(get=lambda *_: io.BytesIO(answer.encode()))
    with pytest.raises(msgspec.DecodeError):
        listed(api, "/api/v1/pods")

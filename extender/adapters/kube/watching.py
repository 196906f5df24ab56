"""List+watch of one resource into events.

A watch resumes where it stopped: on a plain end of stream (an apiserver ends watches in a burst, without an error), on
a broken connection, on a timeout. Only 410 Gone, or what cannot be read, makes it list again; a list states everything
there is, so nothing is missed and nothing counted twice. An object of a list that cannot be read is left out, and named
in the log.
"""

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import structlog
import urllib3

from extender.adapters.kube.api import Api, Refused, whole
from extender.adapters.kube.decoding import PodReader, group_from, owner_from
from extender.adapters.kube.objects import GroupObject, JobObject
from extender.cluster.events import (
    Event,
    GroupGone,
    GroupSeen,
    GroupsListed,
    OwnerGone,
    OwnerSeen,
    OwnersListed,
    PodGone,
    PodSeen,
    PodsListed,
)
from extender.cluster.model import Pod
from extender.errors import AnswerTooLarge, ClusterError

_PAGE = 500
"""So many objects are asked for at once; a quarter of that where they are too large, and so on."""
_WATCH_SECONDS = 300
_SILENCE_SECONDS = 75
"""Bookmarks come every minute: a watch that is silent for longer hangs."""
_LONGEST_PAUSE_SECONDS = 10.0
_LONGEST_LINE = 2**24
"""etcd takes no object of more than some MiB."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What reading an object raises that is not what Kubernetes says it is."""

log = structlog.get_logger()


class _Expired(Exception):
    """The resource version is too old to resume from."""


class _Meta(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Name(msgspec.Struct):
    name: str
    namespace: str = ""


class _Named(msgspec.Struct):
    metadata: _Name


class _Versioned(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _List(msgspec.Struct):
    metadata: _Meta
    items: list[msgspec.Raw] | None


class _Change(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


# Made here, by one thread: several that make the first decoder of one type at the same moment end the process (msgspec
# 0.22 lets the others use a type that is made in part).
_decode_list = msgspec.json.Decoder(_List).decode
_decode_change = msgspec.json.Decoder(_Change).decode
_decode_named = msgspec.json.Decoder(_Named).decode
_decode_versioned = msgspec.json.Decoder(_Versioned).decode
_decode_status = msgspec.json.Decoder(_Status).decode


@dataclass(frozen=True, slots=True)
class Resource:
    """How one resource is read: its path, and how its objects become events.

    One that is `optional` may go away with its whole kind: then there are none of it, and nothing is wrong.
    """

    name: str
    path: str
    listed: Callable[[Iterable[msgspec.Raw]], Event]
    seen: Callable[[msgspec.Raw], Event]
    gone: Callable[[msgspec.Raw], Event]
    optional: bool = False


def listed(api: Api, path: str, turned: Callable[[], None] = lambda: None) -> tuple[Iterator[msgspec.Raw], str]:
    """Return all objects at a path, and the resource version of that list, which its first page says.

    The objects come one by one and page by page, so that no more than one page is in memory as JSON. `turned` is called
    for each page.
    """
    first, limit = _page(api, path, "", _PAGE)
    return _objects(api, path, first, limit, turned), first.metadata.resource_version


def _objects(api: Api, path: str, page: _List, limit: int, turned: Callable[[], None]) -> Iterator[msgspec.Raw]:
    while True:
        turned()
        yield from page.items or ()
        if not (token := page.metadata.continue_):
            return
        del page  # before the next one comes
        page, limit = _page(api, path, token, limit)


def _page(api: Api, path: str, token: str, limit: int) -> tuple[_List, int]:
    """Return a page of so many objects, or of fewer where that is too large, and of how many."""
    params = [("limit", str(limit))] + ([("continue", token)] if token else [])
    try:
        return _decode_list(whole(api.get(path, params), f"GET {path}")), limit
    except AnswerTooLarge:
        if limit == 1:
            raise
    return _page(api, path, token, limit // 4)


def full_name(raw: msgspec.Raw) -> str:
    """Return the namespace and name of an object, of which other fields may not be readable."""
    try:
        meta = _decode_named(raw).metadata
    except UNREADABLE:
        return "without a name"
    return f"{meta.namespace}/{meta.name}".removeprefix("/")


def pods() -> Resource:
    """Return how pods are read."""
    reader = PodReader()

    def read(raw: msgspec.Raw) -> Pod:
        pod = reader.read(raw)
        if not (pod.namespace and pod.name and pod.uid):  # its queue would have no name
            raise msgspec.ValidationError("metadata states no namespace, no name or no uid; accepted: all three")
        return pod

    return Resource(
        name="pods",
        path="/api/v1/pods",
        listed=lambda raws: PodsListed([read(raw) for raw in raws]),
        seen=lambda raw: PodSeen(read(raw)),
        gone=lambda raw: PodGone(_decode_versioned(raw).metadata.uid),
    )


def jobs() -> Resource:
    """Return how Jobs are read."""
    decode = msgspec.json.Decoder(JobObject).decode
    return Resource(
        name="jobs",
        path="/apis/batch/v1/jobs",
        listed=lambda raws: OwnersListed([owner_from(decode(raw)) for raw in raws]),
        seen=lambda raw: OwnerSeen(owner_from(decode(raw))),
        gone=lambda raw: OwnerGone(decode(raw).metadata.uid),
    )


def pod_groups(path: str) -> Resource:
    """Return how the pod groups at this path are read: they differ in nothing that we use."""
    decode = msgspec.json.Decoder(GroupObject).decode
    return Resource(
        name=path.removeprefix("/apis/").replace("/", "."),
        path=path,
        listed=lambda raws: GroupsListed(path, [group_from(decode(raw), path) for raw in raws]),
        seen=lambda raw: GroupSeen(group_from(decode(raw), path)),
        gone=lambda raw: GroupGone(group_from(decode(raw), path)),
        optional=True,
    )


class Watch:
    """Follows one resource until stopped, in the thread that calls `run`."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        sink: Callable[[Event], None],
        *,
        restarted: Callable[[str, str], None] = lambda _resource, _cause: None,
        moved: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`sink` takes the events; `restarted` is told what ended a watch, `moved` that the loop goes on."""
        self.resource = resource
        self.synced = threading.Event()
        self.tried = threading.Event()
        self.heard_at: float | None = None
        self._uptime: tuple[float, float | None] = (0.0, None)
        self._api = api
        self._sink = sink
        self._restarted = restarted
        self._moved = moved
        self._clock = clock
        self._stopped = threading.Event()
        self._stream: urllib3.HTTPResponse | None = None

    def run(self) -> None:
        """List, then watch, for ever. What ends a watch is counted; after turns that brought nothing, pauses grow."""
        version, fruitless = "", 0
        while not self._stopped.is_set():
            # At each turn: `version` is the last one taken in, empty where only a new list can tell what there is;
            # `fruitless` counts the turns since the last change was taken in.
            fruitless += 1
            self._moved()
            try:
                version = version or self._list()
                for taken in self._follow(version):
                    version, fruitless = taken, 0
                cause = "ended"
            except _Expired:
                version, cause = "", "expired"
            except (ClusterError, urllib3.exceptions.HTTPError, OSError) as error:
                cause = "failed"
                if self.resource.optional and isinstance(error, Refused) and error.is_not_found:
                    version = ""
                    self._sink(self.resource.listed([]))
                    self._heard()
                    self.synced.set()
                if not self._stopped.is_set():
                    log.warning("watch failed", resource=self.resource.name, error=str(error), failures=fruitless)
            except Exception as error:  # whatever it is: a loop that ended here would leave us blind
                version, cause = "", "garbled"
                log.warning("watch sent what cannot be read", resource=self.resource.name, error=repr(error))
            self._disconnect()
            self.tried.set()
            if not self._stopped.is_set():
                self._restarted(self.resource.name, cause)
                self._stopped.wait(_pause(fruitless))

    def stop(self) -> None:
        """End `run` at once, also where it waits for bytes."""
        self._stopped.set()
        stream = self._stream
        if stream is not None:
            with suppress(ValueError, RuntimeError, OSError):  # it has ended by itself
                stream.shutdown()

    @property
    def connected(self) -> bool:
        """Whether the stream is open."""
        return self._uptime[1] is not None

    def connected_seconds(self, now: float) -> float:
        """Return for how long the stream has been open at `now`: a clock that stands still while it is not."""
        before, since = self._uptime
        return before + (max(now - since, 0.0) if since is not None else 0.0)

    def age_seconds(self) -> float:
        """Return for how long nothing has been heard; infinite before the first list."""
        return float("inf") if self.heard_at is None else self._clock() - self.heard_at

    def _follow(self, version: str) -> Iterator[str]:
        """Yield each resource version that has been taken in after this one."""
        params = [
            ("watch", "true"),
            ("resourceVersion", version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(_WATCH_SECONDS + random.randrange(60))),  # noqa: S311 - spreads reconnections
        ]
        try:
            stream = self._stream = self._api.get(self.resource.path, params, seconds=_SILENCE_SECONDS)
        except Refused as refusal:
            if refusal.status == 410:
                raise _Expired from None
            raise
        self._heard()
        self._uptime = (self._uptime[0], self._clock())
        try:
            for line in _lines(stream) if not self._stopped.is_set() else ():
                yield self._take(_decode_change(line))
                if self._stopped.is_set():
                    return
        finally:
            self._stream = None
            stream.close()

    def _list(self) -> str:
        try:
            raws, version = listed(self._api, self.resource.path, self._moved)
            counter = itertools.count()
            try:
                event = self.resource.listed(raw for raw, _ in zip(raws, counter, strict=False))
            except UNREADABLE:  # each object once more, alone: one of them must not hide all others
                raws, version = listed(self._api, self.resource.path, self._moved)
                counter = itertools.count()
                event = self.resource.listed(raw for raw, _ in zip(filter(self._reads, raws), counter, strict=False))
        except Refused as refusal:
            if refusal.status == 410:
                raise _Expired from None
            raise
        self._sink(event)
        self._heard()
        self.synced.set()
        self.tried.set()
        log.info("listed", resource=self.resource.name, count=next(counter), resource_version=version)
        return version

    def _reads(self, raw: msgspec.Raw) -> bool:
        """Say whether an object can be read; name one that cannot."""
        try:
            self.resource.seen(raw)
        except UNREADABLE as error:
            log.warning("left out", resource=self.resource.name, object=full_name(raw), error=str(error))
            return False
        return True

    def _take(self, change: _Change) -> str:
        if change.type == "ERROR":
            status = _decode_status(change.object)
            log.info("watch expired", resource=self.resource.name, code=status.code, message=status.message)
            raise _Expired
        if change.type != "BOOKMARK":
            self._sink((self.resource.gone if change.type == "DELETED" else self.resource.seen)(change.object))
        self._heard()
        return _decode_versioned(change.object).metadata.resource_version

    def _disconnect(self) -> None:
        self._uptime = (self.connected_seconds(self._clock()), None)

    def _heard(self) -> None:
        self._moved()
        self.heard_at = self._clock()


def _lines(stream: urllib3.HTTPResponse) -> Iterator[bytes]:
    """Yield whole lines of a stream; a last line that was cut off is dropped, as it will be sent again.

    Raises ValueError for one that does not end.
    """
    rest = b""
    for chunk in stream.stream(2**16):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            raise ValueError(f"a line is longer than {_LONGEST_LINE:,} bytes")
        yield from (line for line in lines if line)


def _pause(fruitless: int) -> float:
    longest = min(_LONGEST_PAUSE_SECONDS, 0.1 * 2.0 ** min(fruitless, 10))
    return longest * random.uniform(0.5, 1.0) if fruitless else 0.0  # noqa: S311

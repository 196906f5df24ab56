"""The API server: connecting, and list+watch of nodes and pods into events.

A watch resumes where it stopped: on a plain end of stream (an apiserver ends watches in a burst, without an error), on
a broken connection, on a timeout. Only 410 Gone, or what cannot be read, makes it list again; a list states everything
there is, so nothing is missed and nothing counted twice.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import structlog
import urllib3
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException

from extender.adapters.kinds import group_from, node_from, owner_from, pod_from
from extender.adapters.objects import GroupObject, JobObject, NodeObject, PodObject
from extender.cluster.model import (
    CapacityRule,
    Event,
    GroupGone,
    GroupSeen,
    GroupsListed,
    NodeGone,
    NodeSeen,
    NodesListed,
    OwnerGone,
    OwnerSeen,
    OwnersListed,
    PodGone,
    PodSeen,
    PodsListed,
)
from extender.errors import ClusterError

OLDEST_MINOR = 33
"""In-place resize of pods, which allocation is counted by, is on from Kubernetes 1.33."""

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_WRITE_SECONDS = 10.0

_PAGE = 500
_WATCH_SECONDS = 300
_SILENCE_SECONDS = 75
"""Bookmarks come every minute: a watch that is silent for longer hangs."""
_LONGEST_PAUSE_SECONDS = 10.0

log = structlog.get_logger()


class _Expired(Exception):
    """The resource version is too old to resume from."""


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Versioned(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _List(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    items: list[msgspec.Raw] | None = None


class _Change(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Version(msgspec.Struct, rename="camel"):
    major: str = ""
    minor: str = ""
    git_version: str = ""


class Api:
    """One API server. Every failure to reach it, and every refusal, is a ClusterError."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api

    def get(self, path: str, params: Sequence[tuple[str, str]] = (), *, seconds: float = 30.0) -> urllib3.HTTPResponse:
        """Return an open response, to be read or streamed; `seconds` bounds each wait for bytes."""
        return self._call("GET", path, params, None, seconds)

    def read(self, path: str, params: Sequence[tuple[str, str]] = ()) -> Any:  # noqa: ANN401 - whatever JSON is there
        """Return an object or a list as plain JSON."""
        return msgspec.json.decode(self.get(path, params).data)

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        """Create an object."""
        self._write("POST", path, body, JSON)

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        """Replace an object."""
        self._write("PUT", path, body, JSON)

    def patch(self, path: str, body: object, content: str) -> None:
        """Change an object; `content` is the patch type: JSON_PATCH, MERGE_PATCH or STRATEGIC_PATCH."""
        self._write("PATCH", path, body, content)

    def delete(self, path: str) -> None:
        """Delete an object."""
        self._write("DELETE", path, None, JSON)

    def check_version(self) -> str:
        """Return the server's version. Raises ClusterError if it is older than what the design needs."""
        try:
            version = msgspec.json.decode(self.get("/version").data, type=_Version)
        except (msgspec.DecodeError, UnicodeDecodeError, urllib3.exceptions.HTTPError) as error:
            raise ClusterError(f"GET /version: the answer is not an API server's: {error}") from None
        minor = int("".join(c for c in version.minor if c.isdigit()) or 0)
        if (version.major, minor) < ("1", OLDEST_MINOR):
            needed = f"Dovetail needs 1.{OLDEST_MINOR} or later (resize of pods)"
            raise UnsupportedVersion(f"Kubernetes {version.git_version} is too old; {needed}")
        return version.git_version

    def _write(self, method: str, path: str, body: object, content: str) -> None:
        """Write, and have only the object's metadata sent back: the whole of it would cost as much again."""
        self._call(method, path, (), body, _WRITE_SECONDS, content, _METADATA_ONLY).read()

    def _call(
        self,
        method: str,
        path: str,
        params: Sequence[tuple[str, str]],
        body: object,
        seconds: float,
        content: str = "application/json",
        accept: str = "application/json",
    ) -> urllib3.HTTPResponse:
        try:
            request = self._api.param_serialize(
                method,
                path,
                query_params=list(params),
                header_params={"Accept": accept, "Content-Type": content},
                body=body,
                auth_settings=["BearerToken"],
            )
            reply: urllib3.HTTPResponse = self._api.call_api(*request, _request_timeout=(5.0, seconds)).response
        except (ApiException, urllib3.exceptions.HTTPError, OSError) as error:
            raise ClusterError(f"{method} {path}: {error}") from None
        if reply.status >= 300:
            text = reply.data.decode(errors="replace")[:300]
            raise Refused(f"{method} {path}: {reply.status} {reply.reason}: {text}", reply.status)
        return reply


class Refused(ClusterError):
    """The API server answered, and refused."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class UnsupportedVersion(ClusterError):
    """The API server is older than what Dovetail needs."""


def connect(kubeconfig: Path | None) -> Api:
    """Return the API server that the file names; without a file, the one whose cluster we run in."""
    configuration = client.Configuration()
    try:
        if kubeconfig is not None:
            config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=str(kubeconfig), client_configuration=configuration
            )
        else:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError, TypeError, AttributeError, yaml.YAMLError) as error:
        if kubeconfig is None:
            text = str(error).rstrip(".")
            raise ClusterError(f"this is not a pod of a cluster ({text}); give a file by --kubeconfig") from None
        why = error if isinstance(error, (ConfigException, OSError)) else "it does not read as one"
        raise ClusterError(f"{kubeconfig} is not a kubeconfig: {why}; give another by --kubeconfig") from None
    configuration.retries = False
    return Api(client.ApiClient(configuration))


@dataclass(frozen=True, slots=True)
class Resource:
    """How one resource is read: its path, and how its objects become events."""

    name: str
    path: str
    listed: Callable[[Sequence[msgspec.Raw]], Event]
    seen: Callable[[msgspec.Raw], Event]
    gone: Callable[[msgspec.Raw], Event]


def listed(api: Api, path: str) -> tuple[list[msgspec.Raw], str]:
    """Return all objects at a path, page by page, and the resource version of that list."""
    raws: list[msgspec.Raw] = []
    page = _List(_Meta(continue_="first"))
    token = ""
    while page.metadata.continue_:
        params = [("limit", str(_PAGE))] + ([("continue", token)] if token else [])
        page = msgspec.json.decode(api.get(path, params).data, type=_List)
        raws += page.items or []
        token = page.metadata.continue_
    return raws, page.metadata.resource_version


def pods() -> Resource:
    """Return how pods are read."""
    decode = msgspec.json.Decoder(PodObject).decode
    return Resource(
        name="pods",
        path="/api/v1/pods",
        listed=lambda raws: PodsListed([pod_from(decode(raw)) for raw in raws]),
        seen=lambda raw: PodSeen(pod_from(decode(raw))),
        gone=lambda raw: PodGone(decode(raw).metadata.uid),
    )


def nodes(rules: Sequence[CapacityRule]) -> Resource:
    """Return how nodes are read; `rules` give the I/O capacity of those that carry no annotation."""
    decode = msgspec.json.Decoder(NodeObject).decode
    return Resource(
        name="nodes",
        path="/api/v1/nodes",
        listed=lambda raws: NodesListed([node_from(decode(raw), rules) for raw in raws]),
        seen=lambda raw: NodeSeen(node_from(decode(raw), rules)),
        gone=lambda raw: NodeGone(decode(raw).metadata.name),
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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.resource = resource
        self.synced = threading.Event()
        self.heard_at: float | None = None
        self._uptime: tuple[float, float | None] = (0.0, None)
        self._api = api
        self._sink = sink
        self._restarted = restarted
        self._clock = clock
        self._stopped = threading.Event()
        self._stream: urllib3.HTTPResponse | None = None

    def run(self) -> None:
        """List, then watch, for ever. What ends a watch is counted; after rounds that brought nothing, pauses grow."""
        version, fruitless = "", 0
        while not self._stopped.is_set():
            fruitless += 1
            try:
                version = version or self._list()
                for taken in self._follow(version):
                    version, fruitless = taken, 0
                cause = "ended"
            except _Expired:
                version, cause = "", "expired"
            except (ClusterError, urllib3.exceptions.HTTPError, OSError) as error:
                cause = "failed"
                if not self._stopped.is_set():
                    log.warning("watch failed", resource=self.resource.name, error=str(error), failures=fruitless)
            except Exception as error:  # whatever it is: a loop that ended here would leave us blind
                version, cause = "", "garbled"
                log.warning("watch sent what cannot be read", resource=self.resource.name, error=repr(error))
            self._disconnect()
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

    def connected_seconds(self) -> float:
        """Return for how long the stream has been open, all in all: a clock that stands still while it is not."""
        before, since = self._uptime
        return before + (self._clock() - since if since is not None else 0.0)

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
                yield self._take(msgspec.json.decode(line, type=_Change))
                if self._stopped.is_set():
                    return
        finally:
            self._stream = None
            stream.close()

    def _list(self) -> str:
        try:
            raws, version = listed(self._api, self.resource.path)
        except Refused as refusal:
            if refusal.status == 410:
                raise _Expired from None
            raise
        self._sink(self.resource.listed(raws))
        self._heard()
        self.synced.set()
        log.info("listed", resource=self.resource.name, count=len(raws), resource_version=version)
        return version

    def _take(self, change: _Change) -> str:
        if change.type == "ERROR":
            status = msgspec.json.decode(change.object, type=_Status)
            log.info("watch expired", resource=self.resource.name, code=status.code, message=status.message)
            raise _Expired
        if change.type != "BOOKMARK":
            self._sink((self.resource.gone if change.type == "DELETED" else self.resource.seen)(change.object))
        self._heard()
        return msgspec.json.decode(change.object, type=_Versioned).metadata.resource_version

    def _disconnect(self) -> None:
        self._uptime = (self.connected_seconds(), None)

    def _heard(self) -> None:
        self.heard_at = self._clock()


def _lines(stream: urllib3.HTTPResponse) -> Iterator[bytes]:
    """Yield whole lines of a stream; a last line that was cut off is dropped, as it will be sent again."""
    rest = b""
    for chunk in stream.stream(2**16):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line)


def _pause(fruitless: int) -> float:
    longest = min(_LONGEST_PAUSE_SECONDS, 0.1 * 2.0 ** min(fruitless, 10))
    return longest * random.uniform(0.5, 1.0) if fruitless else 0.0  # noqa: S311

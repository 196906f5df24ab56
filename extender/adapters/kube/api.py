"""The API server: connecting, reading and writing. Every failure to reach it, and every refusal, is a ClusterError."""

import math
import os
import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import urllib3
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import KubeConfigMerger

from extender.adapters.kube.plain_objects import plain_answer
from extender.errors import AnswerTooLarge, ClusterError

MOST_BYTES = 256 * 2**20
"""No answer is larger: metrics-server says some 500 bytes of each pod."""

OLDEST_MINOR = 33
"""In-place resize of pods, which allocation is counted by, is on from Kubernetes 1.33."""

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_CONNECT_SECONDS = 5.0
_WRITE_SECONDS = 10.0
_MOST_IDLE_CONNECTIONS = 100
"""More than watches, loops and `control.writers` use at once: one beyond is closed after its call, with a warning, and
the next call opens another. The client's own number is 5 for each core of the machine."""
_FAILURES = (ApiException, ConfigException, urllib3.exceptions.HTTPError, OSError, ValueError)
"""What a call may raise. A token that is just being rotated is a ConfigException or makes a ValueError of a header."""
_CLIENT_NAMES = re.compile(r"HTTPS?Connection(Pool)?\(host=.*?\): |\[Errno -?\d+\] ")
"""What urllib3 and Python put before the words of an error."""
_UNREADABLE = (ConfigException, OSError, ValueError, TypeError, AttributeError, RecursionError, yaml.YAMLError)
"""What reading a kubeconfig may raise, whatever stands in the file."""

_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_DEFAULT_NAMESPACE = "default"


class _Version(msgspec.Struct, rename="camel"):
    major: str = ""
    minor: str = ""
    git_version: str = ""


_decode_version = msgspec.json.Decoder(_Version).decode


class Api:
    """One API server. Every failure to reach it, and every refusal, is a ClusterError."""

    def __init__(self, api: client.ApiClient, longest_seconds: float = math.inf) -> None:
        self._api = api
        self._longest_seconds = longest_seconds

    def apart(self, seconds: float) -> "Api":
        """Return the same server for calls that must not wait: each waits `seconds` at most, for a connection or bytes.

        Its connections are its own, and one that was silent is dropped: where a server behind a balancer has died, the
        next call reaches another.
        """
        twin = client.ApiClient(self._api.configuration)
        twin.default_headers.update(self._api.default_headers)
        return Api(twin, seconds)

    def get(self, path: str, params: Sequence[tuple[str, str]] = (), *, seconds: float = 30.0) -> urllib3.HTTPResponse:
        """Return an open response, to be read or streamed; `seconds` bounds each wait for bytes."""
        return self._call("GET", path, params, None, seconds)

    def read(self, path: str, params: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
        """Return an object or a list as plain JSON (`plain_objects`)."""
        reply = self.get(path, params)
        with understood(f"GET {path}"):
            raw = whole(reply, f"GET {path}")
            answer: dict[str, Any] = (
                plain_answer(raw, path) if path.startswith("/api") else msgspec.json.decode(raw, type=dict[str, Any])
            )
        return answer

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
        with understood("GET /version"):
            version = _decode_version(whole(self.get("/version"), "GET /version"))
        minor = int("".join(c for c in version.minor if c.isdigit()) or 0)
        if (version.major, minor) < ("1", OLDEST_MINOR):
            needed = f"Dovetail needs 1.{OLDEST_MINOR} or later (resize of pods)"
            raise UnsupportedVersion(f"Kubernetes {version.git_version} is too old; {needed}")
        return version.git_version

    def _write(self, method: str, path: str, body: object, content: str) -> None:
        """Write, and have only the object's metadata sent back: the whole of it would cost as much again."""
        params = [("fieldManager", "dovetail")] if method != "DELETE" else []
        reply = self._call(method, path, params, body, _WRITE_SECONDS, content=content, accept=_METADATA_ONLY)
        whole(reply, f"{method} {path}")

    def _call(
        self,
        method: str,
        path: str,
        params: Sequence[tuple[str, str]],
        body: object,
        seconds: float,
        *,
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
            _trim_token(request[2])
            limits = min(_CONNECT_SECONDS, self._longest_seconds), min(seconds, self._longest_seconds)
            reply: urllib3.HTTPResponse = self._api.call_api(*request, _request_timeout=limits).response
        except _FAILURES as error:
            traceback.clear_frames(error.__traceback__)  # those of urllib3 keep the error, and all who call
            raise ClusterError(f"{method} {self._api.configuration.host}{path}: {in_words(error)}") from None
        if reply.status >= 300:
            text = whole(reply, f"{method} {path}: {reply.status} {reply.reason}").decode(errors="replace")
            text = _one_line(text)[:600]
            raise Refused(f"{method} {path}: {reply.status} {reply.reason}: {text}", reply.status)
        return reply


def _trim_token(headers: dict[str, str]) -> None:
    """Leave out the white space about a token: a file that holds one may end in a line end, as with kubectl."""
    if "authorization" in headers:
        headers["authorization"] = headers["authorization"].strip()


def in_words(error: Exception) -> str:
    """Return why a call failed, without names of the client, and without the token, which a header's error quotes."""
    text = _one_line(str(error))
    if text.startswith("Invalid header value"):
        return "the token is not text on one line"
    question = "; is a server there?" if isinstance(error, urllib3.exceptions.NewConnectionError) else ""
    return _CLIENT_NAMES.sub("", text) + question


def _one_line(text: str) -> str:
    """Return a text without line ends: a proxy answers in a page of HTML, TLS fails in three lines."""
    return " ".join(text.split())


class Refused(ClusterError):
    """The API server answered, and refused."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class UnsupportedVersion(ClusterError):
    """The API server is older than what Dovetail needs."""


def connect(kubeconfig: Path | None, context: str = "") -> Api:
    """Return the API server of a context of the kubeconfig, empty: its current one; without a file, that of our pod.

    Several files, separated as in $KUBECONFIG, are merged as kubectl merges them: those that are not there or empty are
    skipped, and the first to name something wins.
    """
    configuration = client.Configuration()
    try:
        if kubeconfig is not None:
            files = _with_content(kubeconfig)
            if context:
                _require_context(kubeconfig, context, _namespaces_by_context(files))
            chosen = context or _first_context(files)
            config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=files, context=chosen, client_configuration=configuration
            )
            if (name := _token_file(files, chosen)) is not None:
                configuration.refresh_api_key_hook = _TokenFile(name)  # type: ignore[assignment] # None is its default
        else:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except _UNREADABLE as error:
        raise _not_connected(kubeconfig, error) from None
    if kubeconfig is None and context:
        raise ClusterError(f"there is no kubeconfig with a context {context}; give a file by --kubeconfig")
    configuration.retries = False
    configuration.connection_pool_maxsize = _MOST_IDLE_CONNECTIONS
    return Api(client.ApiClient(configuration))


def _token_file(files: str, context: str | None) -> str | None:
    """Return the file that holds the token of a context's user; None where its token is from elsewhere."""
    merged = KubeConfigMerger(files).config  # type: ignore[no-untyped-call]
    chosen = merged["contexts"].get_with_name(context or merged["current-context"])["context"]
    if not (merged.safe_get("users") and chosen.safe_get("user")):
        return None
    user = merged["users"].get_with_name(chosen["user"], safe=True)
    said = user.safe_get("user") if user is not None else None
    if not said or "token" in said or "auth-provider" in said or "tokenFile" not in said:
        return None
    return os.path.join(os.path.abspath(os.path.dirname(user.path)), str(said["tokenFile"]))


class _TokenFile:
    """The token in a file, which is read again when the file has changed: it is rotated, and the old one expires.

    The client library reads it once. One that cannot be read, as it is just being written, is read later.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._stamp = _stamp(name)

    def __call__(self, configuration: client.Configuration) -> None:
        """Give a client the token that its next call shall send."""
        try:
            stamp = _stamp(self._name)
            token = "" if stamp == self._stamp else Path(self._name).read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            return
        if token:
            configuration.api_key["BearerToken"], self._stamp = f"Bearer {token}", stamp


def _stamp(name: str) -> tuple[int, int, int]:
    status = os.stat(name)
    return status.st_mtime_ns, status.st_ino, status.st_size


def default_namespace(kubeconfig: Path | None, context: str = "") -> str:
    """Return the namespace that kubectl would take: that of the context; without a file, that of our pod."""
    if kubeconfig is None:
        return _POD_NAMESPACE.read_text().strip() if _POD_NAMESPACE.is_file() else _DEFAULT_NAMESPACE
    files = _with_content(kubeconfig)
    try:
        return _namespaces_by_context(files).get(context or _first_context(files) or "") or _DEFAULT_NAMESPACE
    except _UNREADABLE as error:
        raise _not_connected(kubeconfig, error) from None


def _namespaces_by_context(files: str) -> dict[str, str]:
    """Return the contexts that the files name, each with its namespace, empty where it states none."""
    merged = KubeConfigMerger(files)  # type: ignore[no-untyped-call]
    contexts = [node.value for node in merged.config.value["contexts"]]
    return {context["name"]: str((context.get("context") or {}).get("namespace") or "") for context in contexts}


def _require_context(kubeconfig: Path, context: str, known: Mapping[str, str]) -> None:
    """Raise ClusterError, which names the contexts that there are, where this is none of them."""
    if context not in known:
        names = ", ".join(sorted(known)) or "none is there"
        raise ClusterError(f"{kubeconfig} has no context {context}; accepted: {names}")


def _not_connected(kubeconfig: Path | None, error: Exception) -> ClusterError:
    """Return what a user is told of a file that names no API server, or of a process that is in no pod."""
    if kubeconfig is None:
        text = str(error).rstrip(".")
        return ClusterError(
            f"there is no kubeconfig, and this is not a pod of a cluster ({text}); give a file by --kubeconfig"
        )
    why = error if isinstance(error, (ConfigException, OSError)) else "it does not read as one"
    if not any(map(os.path.exists, _files(kubeconfig))):
        why = "there is no such file"
    return ClusterError(f"{kubeconfig} is not a kubeconfig: {why}; give another by --kubeconfig")


def _with_content(kubeconfig: Path) -> str:
    """Return the files that say something; all of them where none does, so that an error can name them."""
    for path in _files(kubeconfig):
        if Path(path).is_fifo():
            raise ClusterError(f"{path} is a pipe, which can be read once only; accepted: a kubeconfig that is a file")
    files = (path for path in _files(kubeconfig) if os.path.isfile(path) and os.path.getsize(path))
    return os.pathsep.join(files) or str(kubeconfig)


def _files(kubeconfig: Path) -> list[str]:
    return [os.path.expanduser(path) for path in str(kubeconfig).split(os.pathsep)]


def _first_context(files: str) -> str | None:
    """Return the current context of the first file that names one; the client library takes the last."""
    contents = KubeConfigMerger(files).config_files.values()  # type: ignore[no-untyped-call]
    return next((context for content in contents if (context := content.get("current-context"))), None)


def whole(reply: urllib3.BaseHTTPResponse, what: str) -> bytes:
    """Return all of an answer; one that breaks off is a ClusterError like any other failure.

    Raises AnswerTooLarge for one that does not end.
    """
    try:
        answer = reply.read(MOST_BYTES + 1)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ClusterError(f"{what}: the answer broke off: {error}") from None
    if len(answer) > MOST_BYTES:
        reply.close()
        raise AnswerTooLarge(f"{what}: the answer is larger than {MOST_BYTES:,} bytes")
    return answer


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Make a ClusterError of what decoding raises: an answer that is not an API server's, or not whole."""
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ClusterError(f"{what}: the answer cannot be read: {error}") from None

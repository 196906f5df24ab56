"""Asks Prometheus by HTTP: who we are, whom we trust, and how long we wait. Every failure is a UsageError."""

import ssl
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

import urllib3

from extender.errors import UsageError
from extender.settings.sections import UsageAccess

MOST_BYTES = 256 * 2**20
"""No answer is larger: 5,000 nodes and 10,000 pods make some 20 MB."""

_CHUNK = 65_536
_CONNECT_SECONDS = 5.0


class Access:
    """One Prometheus at `url`, which may have a path before /api (Thanos, Mimir, VictoriaMetrics).

    One thread asks. The connection is kept; it is made anew where a file of certificates has changed. Redirects are not
    followed: they could lead the token elsewhere.
    """

    def __init__(self, url: str, access: UsageAccess) -> None:
        self._url = url.rstrip("/")
        self._access = access
        self._pool: urllib3.PoolManager | None = None
        self._stamps: tuple[float, ...] = ()

    def post(self, path: str, form: Mapping[str, str], deadline: float) -> bytes:
        """Return the body of a good answer that is whole before `deadline` (monotonic). Raises UsageError."""
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise UsageError("slow", f"{self._url}: no answer in time")
        timeout = urllib3.Timeout(connect=min(_CONNECT_SECONDS, seconds), read=seconds)
        headers = {**self._headers(), "Content-Type": "application/x-www-form-urlencoded"}
        try:
            reply = self._connections().request(
                "POST",
                f"{self._url}{path}",
                body=urlencode(form),
                headers=headers,
                timeout=timeout,
                retries=False,
                redirect=False,
                preload_content=False,
            )
            try:
                body = self._whole(reply, deadline)
            except BaseException:
                reply.close()
                raise
            reply.release_conn()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            traceback.clear_frames(error.__traceback__)  # those of urllib3 keep the error, and all who call
            raise self._failure(error) from None
        if reply.status != 200:
            kind = "refused" if 300 <= reply.status < 500 else "server_error"
            raise UsageError(kind, f"{self._url}: {reply.status} {reply.reason}: {body[:200].decode(errors='replace')}")
        return body

    def _failure(self, error: Exception) -> UsageError:
        """Return what a failed request says. urllib3 calls a connection that cannot be made a timeout, too."""
        timeouts = urllib3.exceptions.TimeoutError, TimeoutError
        if isinstance(error, timeouts) and not isinstance(error, urllib3.exceptions.NewConnectionError):
            return UsageError("slow", f"{self._url}: no answer in time")
        return UsageError("unreachable", f"{self._url}: {_in_short(error)}")

    def _whole(self, reply: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        """Return the body; a server that drips it is slow, one that never ends says too much."""
        parts, size = [], 0
        while part := reply.read1(_CHUNK, decode_content=True):
            parts.append(part)
            size += len(part)
            if time.monotonic() > deadline:
                raise TimeoutError
            if size > MOST_BYTES:
                raise UsageError("malformed", f"{self._url}: the answer is larger than {MOST_BYTES:,} bytes")
        return b"".join(parts)

    def _headers(self) -> dict[str, str]:
        access = self._access
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "dovetail", **access.headers}
        if access.token_file:
            headers["Authorization"] = f"Bearer {_secret(access.token_file)}"
        elif access.username:
            password = _secret(access.password_file) if access.password_file else ""
            headers["Authorization"] = urllib3.make_headers(basic_auth=f"{access.username}:{password}")["authorization"]
        return headers

    def _connections(self) -> urllib3.PoolManager:
        access = self._access
        files = [name for name in (access.ca_file, access.cert_file, access.key_file) if name]
        stamps = tuple(_changed(name) for name in files)
        if self._pool is None or stamps != self._stamps:
            if self._pool is not None:
                self._pool.clear()
            self._pool, self._stamps = _pool(access), stamps
        return self._pool


def _pool(access: UsageAccess) -> urllib3.PoolManager:
    try:
        context = ssl.create_default_context(cafile=access.ca_file or None)
        if access.cert_file:
            context.load_cert_chain(access.cert_file, access.key_file or None)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise UsageError("credentials", f"certificates cannot be used: {_in_short(error)}") from None
    return urllib3.PoolManager(num_pools=1, maxsize=1, ssl_context=context)


def _secret(name: str) -> str:
    """Return what a file holds, without the line's end. Raises UsageError, which does not say what it holds."""
    try:
        text = Path(name).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise UsageError("credentials", f"{name} cannot be read: {why}") from None
    if not text or not text.isprintable():
        raise UsageError("credentials", f"{name} holds no token on one line")
    return text


def _changed(name: str) -> float:
    try:
        return Path(name).stat().st_mtime
    except OSError as error:
        raise UsageError("credentials", f"{name} cannot be read: {error.strerror}") from None


def _in_short(error: Exception) -> str:
    """Return what went wrong, without urllib3's name of the connection: who is asked is said already."""
    text = str(getattr(error, "reason", None) or error)
    return (text.partition("): ")[2] or text)[:200]

"""The verbs, health and metrics by path. Errors become replies here, and nowhere else.

A verb is answered before Flask looks at the request, which costs as much as a verb does. Flask answers all else.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import structlog
from flask import Flask, Response

from extender.adapters.http import wire
from extender.adapters.http.health import Problem, add_probes
from extender.adapters.http.judging import NotReady
from extender.adapters.http.verbs import Verbs
from extender.adapters.metrics.serve import ServeMetrics
from extender.errors import BadRequest, DovetailError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication

Answer = Callable[[bytes], bytes]
"""Returns the reply to the body of a request. Raises BadRequest, NotReady."""

log = structlog.get_logger()


def create_app(verbs: Verbs, live: Problem = lambda: None, more: Mapping[str, Answer] | None = None) -> Flask:
    """Return the app around the verbs, and `more` of such by name; `live` returns what only a restart can mend."""
    app = Flask("dovetail")
    add_probes(app, live=live, ready=verbs.readiness.problem)

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(verbs.metrics.text(), mimetype="text/plain; version=0.0.4")

    answers = {"filter": verbs.filter, "prioritize": verbs.prioritize, "preempt": verbs.preempt, **(more or {})}
    app.wsgi_app = _Posts(answers, verbs.metrics, app.wsgi_app)  # type: ignore[method-assign] # as Flask says to do
    return app


class _Posts:
    """WSGI: answers what is posted to a verb's path, and leaves the rest to another app.

    Errors become replies, and every request is timed by its result.
    """

    def __init__(self, answers: Mapping[str, Answer], metrics: ServeMetrics, otherwise: "WSGIApplication") -> None:
        self._answers = {f"/{name}": (name, answer) for name, answer in answers.items()}
        self._seconds, self._otherwise = metrics.request_seconds, otherwise
        self._answered = {name: self._seconds.labels(name, "ok") for name in answers}

    def __call__(self, environ: dict[str, Any], start_response: "StartResponse") -> Iterable[bytes]:
        verb = self._answers.get(environ["PATH_INFO"])
        if verb is None:
            return self._otherwise(environ, start_response)
        if (method := environ["REQUEST_METHOD"]) != "POST":
            body = _error(verb[0], BadRequest("accepted: POST"))
            replied = _replied(start_response, HTTPStatus.METHOD_NOT_ALLOWED, body, ("Allow", "POST"))
            return [] if method == "HEAD" else replied  # a body would be taken for the next reply
        status, body = self._answer(*verb, environ["wsgi.input"].read())
        return _replied(start_response, status, body)

    def _answer(self, name: str, answer: Answer, asked: bytes) -> tuple[HTTPStatus, bytes]:
        started = time.perf_counter()
        timer, status = None, HTTPStatus.OK
        try:
            body, timer = answer(asked), self._answered[name]
        except BadRequest as error:
            status, result, body = HTTPStatus.BAD_REQUEST, "bad_request", _error(name, error)
        except NotReady as error:
            status, result, body = HTTPStatus.SERVICE_UNAVAILABLE, "not_ready", _error(name, error)
        except Exception as error:
            log.exception("verb failed", verb=name)
            status, result = HTTPStatus.INTERNAL_SERVER_ERROR, "error"
            body = _error(name, DovetailError(f"internal error: {error!r}"))
        timer = timer or self._seconds.labels(name, result)
        timer.observe(time.perf_counter() - started)
        return status, body


def _replied(start_response: "StartResponse", status: HTTPStatus, body: bytes, *more: tuple[str, str]) -> list[bytes]:
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body))), *more]
    start_response(f"{status.value} {status.phrase}", headers)
    return [body]


def _error(verb: str, error: DovetailError) -> bytes:
    if not isinstance(error, NotReady):
        log.warning("request refused", verb=verb, error=str(error))
    return wire.encode({"Error": f"dovetail: {verb}: {error}"})

"""The Flask app: the verbs, health and metrics by path. Errors become replies here, and nowhere else."""

import time
from collections.abc import Callable

import structlog
from flask import Flask, Response, request

from extender.adapters.http import wire
from extender.adapters.http.health import Problem, add_probes
from extender.adapters.http.judging import NotReady
from extender.adapters.http.verbs import Verbs
from extender.adapters.metrics.serve import Metrics
from extender.errors import BadRequest, DovetailError

log = structlog.get_logger()


def create_app(verbs: Verbs, live: Problem = lambda: None) -> Flask:
    """Return the Flask app around the verbs; `live` returns what only a restart can mend."""
    app = Flask("dovetail")
    add_probes(app, live=live, ready=verbs.readiness.problem)
    for name, answer in (("filter", verbs.filter), ("prioritize", verbs.prioritize), ("preempt", verbs.preempt)):
        app.add_url_rule(f"/{name}", name, _verb(name, answer, verbs.metrics), methods=["POST"])

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(verbs.metrics.text(), mimetype="text/plain; version=0.0.4")

    return app


def _verb(name: str, answer: Callable[[bytes], bytes], metrics: Metrics) -> Callable[[], Response]:
    """Wrap a verb: errors become replies, and every request is timed by its result."""

    def view() -> Response:
        started = time.perf_counter()
        status, result = 200, "ok"
        try:
            body = answer(request.get_data(cache=False))
        except BadRequest as error:
            status, result, body = 400, "bad_request", _error(name, error)
        except NotReady as error:
            status, result, body = 503, "not_ready", _error(name, error)
        except Exception as error:
            log.exception("verb failed", verb=name)
            status, result, body = 500, "error", _error(name, DovetailError(f"internal error: {error!r}"))
        metrics.request_seconds.labels(name, result).observe(time.perf_counter() - started)
        return Response(body, status, mimetype="application/json")

    return view


def _error(verb: str, error: DovetailError) -> bytes:
    if not isinstance(error, NotReady):
        log.warning("request refused", verb=verb, error=str(error))
    return wire.encode({"Error": f"dovetail: {verb}: {error}"})

"""Probes, and the Flask app of a process that nobody asks for decisions: metrics, and how long jobs have waited."""

from collections.abc import Callable

from flask import Flask, Response

from extender.adapters.http.wait_report import PATH
from extender.adapters.usage import report as usage_report

Problem = Callable[[], str | None]
"""Returns what is wrong, None where nothing is."""


def add_probes(app: Flask, *, live: Problem, ready: Problem) -> None:
    """Add /livez, which fails where only a restart helps, and /readyz, which fails while answers cannot be trusted."""

    @app.get("/livez")
    def livez() -> Response:
        return _probed(live())

    @app.get("/readyz")
    def readyz() -> Response:
        return _probed(ready())


def create_health_app(
    *,
    live: Problem,
    ready: Problem,
    metrics: Callable[[], bytes],
    waits: Callable[[], bytes],
    usage: Callable[[], bytes] = lambda: b'{"on":false}',
) -> Flask:
    """Return the app; `waits` for locality and what is known of `usage` are JSON, each written by its report."""
    app = Flask("dovetail")
    add_probes(app, live=live, ready=ready)

    @app.get("/metrics")
    def exported() -> Response:
        return Response(metrics(), mimetype="text/plain; version=0.0.4")

    @app.get(f"/{PATH}")
    def waited() -> Response:
        return Response(waits(), mimetype="application/json")

    @app.get(f"/{usage_report.PATH}")
    def measured() -> Response:
        return Response(usage(), mimetype="application/json")

    return app


def _probed(problem: str | None) -> Response:
    return Response(f"{problem or 'ok'}\n", 503 if problem else 200, mimetype="text/plain")

"""The Flask app of a process that nobody asks for decisions: health, metrics, and how long jobs have waited."""

from collections.abc import Callable

from flask import Flask, Response

from extender.adapters.waits_told import PATH


def create_health_app(
    problem: Callable[[], str | None], metrics: Callable[[], bytes], waits: Callable[[], bytes]
) -> Flask:
    """Return the app: ready where there is no `problem`; `waits` for locality are JSON (`waits_told`)."""
    app = Flask("dovetail")

    @app.get("/livez")
    def livez() -> Response:
        return Response("ok\n", mimetype="text/plain")

    @app.get("/readyz")
    def readyz() -> Response:
        found = problem()
        return Response(f"{found or 'ok'}\n", 503 if found else 200, mimetype="text/plain")

    @app.get("/metrics")
    def exported() -> Response:
        return Response(metrics(), mimetype="text/plain; version=0.0.4")

    @app.get(f"/{PATH}")
    def waited() -> Response:
        return Response(waits(), mimetype="application/json")

    return app

"""`dovetail serve --with-control`: both in one process, so that each event is read once for both."""

import signal
from pathlib import Path

import msgspec
import structlog

from extender.adapters.kube.api import connect
from extender.app.controlling import Control
from extender.app.liveness import Liveness
from extender.app.logs import configure_logs
from extender.app.serving import ExtenderService
from extender.app.watches import Watches
from extender.errors import SettingsError
from extender.settings import Settings

_HIGHEST_PORT = 65_535

log = structlog.get_logger()


def control_server(settings: Settings) -> Settings:
    """Return the settings of `control` beside `serve`: it listens on the next port; 0 stays any.

    Raises SettingsError where there is no next port.
    """
    port = settings.server.port
    if port == _HIGHEST_PORT:
        raise SettingsError(f"server.port: {port} leaves no port for control, which has the next one; accepted: below")
    server = msgspec.structs.replace(settings.server, port=port + 1 if port else 0)
    return msgspec.structs.replace(settings, server=server)


def serve_with_control(settings: Settings, kubeconfig: Path | None) -> None:
    """Run the extender and the controllers until SIGTERM or SIGINT. Raises SettingsError and ClusterError."""
    configure_logs(settings.log)
    beside, api, liveness = control_server(settings), connect(kubeconfig), Liveness()
    watches = Watches(api, liveness, parts=2)
    service = ExtenderService(settings, api, liveness, watches)
    control = Control(beside, connect(kubeconfig), liveness, watches)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: service.stop())
    running = liveness.start("control", control.run)
    try:
        service.run()
    finally:
        control.stop()
        running.join()

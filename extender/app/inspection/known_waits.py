"""Asks the `control` that leads for what only it knows of waits for locality; where it cannot be asked, says why."""

from collections.abc import Callable
from typing import TypeVar

from extender.adapters.http.wait_report import PATH, WaitReport, read
from extender.adapters.kube.api import Refused
from extender.adapters.metrics.scraping import CONTROL_PORT, NAME_LABEL, our_pods, said_at, said_by_pods
from extender.app.inspection.reading import Reader, in_short
from extender.errors import ClusterError

_Report = TypeVar("_Report")


def waits_of(reader: Reader, address: str = "") -> WaitReport | str:
    """Return the waits as the replica that leads has them, at its address, else through its pods; or why not."""
    reports = reports_of(reader, address, PATH, read)
    if isinstance(reports, str):
        return reports
    return next((report for report in reports if report.leads), "no replica of it leads")


def reports_of(reader: Reader, address: str, path: str, read: Callable[[str, str], _Report]) -> list[_Report] | str:
    """Return what each replica of `control` reports at a path, at least one; or why none can be asked."""
    try:
        texts = [said_at(address, path)] if address else _of_pods(reader, path)
        reports = [read(source, text) for source, text in texts]
    except Refused as refusal:
        barred = reader.note_barred("pods of control", refusal)
        why = in_short(refusal) if barred else f"answer {refusal.status}; a NetworkPolicy may forbid it"
        return f"its pods cannot be asked through the API server: {why}; try --control"
    except ClusterError as error:
        return str(error)
    if not reports:
        return (
            f"no pod of it runs in {reader.namespace}, labelled {NAME_LABEL} with a port {CONTROL_PORT}; try --control"
        )
    return reports


def _of_pods(reader: Reader, path: str) -> list[tuple[str, str]]:
    return said_by_pods(reader.api, our_pods(reader.api, reader.namespace), CONTROL_PORT, path)

"""Asks the `control` that leads for what only it knows of waits for locality; where it cannot be asked, says why."""

from collections.abc import Callable
from typing import TypeVar

from extender.adapters.http.wait_report import PATH, WaitReport, read
from extender.adapters.kube.api import Refused
from extender.adapters.metrics.scraping import CONTROL_PORT, NAME_LABEL, said_at
from extender.app.inspection.our_pods import said_by_ours
from extender.app.inspection.reading import Reader, in_short
from extender.errors import ClusterError
from extender.explain.findings import Silent

_Report = TypeVar("_Report")


def waits_of(reader: Reader, address: str = "") -> WaitReport | str:
    """Return the waits as the replica that leads has them, at its address, else through its pods; or why not."""
    reports = reports_of(reader, address, PATH, read)
    if isinstance(reports, str):
        return reports
    return next((report for report in reports if report.leads), "no replica of it leads")


def reports_of(reader: Reader, address: str, path: str, read: Callable[[str, str], _Report]) -> list[_Report] | str:
    """Return what each replica of `control` reports at a path, at least one; or why none can be asked (`Silent`)."""
    try:
        texts, silent = ([said_at(address, path)], "") if address else said_by_ours(reader, CONTROL_PORT, path)
        reports = [read(source, text) for source, text in texts]
    except Refused as refusal:
        reader.note_barred("pods of control", refusal)
        return f"its pods cannot be asked through the API server: {in_short(refusal)}; try --control"
    except ClusterError as error:
        return Silent(error) if address else str(error)
    if not reports:
        none = f"no pod of it runs in {reader.namespace}, labelled {NAME_LABEL} with a port {CONTROL_PORT}"
        return silent if isinstance(silent, Silent) else f"{silent or none}; try --control"
    return reports

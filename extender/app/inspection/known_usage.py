"""Asks `control` what it measures: it has the credentials, and the way to Prometheus, that a user may not have."""

from extender.adapters.usage.report import PATH, UsageReport, read
from extender.app.inspection.known_waits import reports_of
from extender.app.inspection.reading import Reader


def usage_of(reader: Reader, address: str = "") -> UsageReport | str:
    """Return what the replica says that measures least, at its address, else through its pods; or why not."""
    reports = reports_of(reader, address, PATH, read)
    if isinstance(reports, str):
        return reports
    return min(reports, key=lambda report: (report.on, report.failure is None, report.measured))

"""What only the `control` that acts knows of waits for locality, however it is reached; else why it is not known."""

from extender.adapters.kube import Api, Refused
from extender.adapters.scrapes import CONTROL_PORT, NAME_LABEL, said_at, said_by_pods
from extender.adapters.waits_told import PATH, WaitsTold, read
from extender.app.looking import in_short
from extender.errors import ClusterError


def waits_of(api: Api, address: str = "") -> WaitsTold | str:
    """Return the waits as the replica that acts has them, at its address, else through its pods; or why not."""
    try:
        said = [said_at(address, PATH)] if address else _of_pods(api)
        told = [read(source, text) for source, text in said]
    except Refused as refusal:
        barred = refusal.status in (401, 403)
        why = in_short(refusal) if barred else f"answer {refusal.status}; a NetworkPolicy may forbid it"
        return f"its pods cannot be asked through the API server: {why}; try --control"
    except ClusterError as error:
        return str(error)
    if not told:
        return f"no pod of it runs, labelled {NAME_LABEL} with a port {CONTROL_PORT}; try --control"
    return next((it for it in told if it.leads), "no replica of it leads")


def _of_pods(api: Api) -> list[tuple[str, str]]:
    pods = api.read("/api/v1/pods", [("labelSelector", NAME_LABEL)])["items"]
    return said_by_pods(api, pods, CONTROL_PORT, PATH)

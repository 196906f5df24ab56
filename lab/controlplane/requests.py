"""Which writes the API server has answered, by its own count."""

import re
from collections import Counter
from collections.abc import Mapping

from kubernetes.client import ApiClient

_LINE = re.compile(r"^apiserver_request_total\{(.*?)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="(.*?)"')
_WRITES = {"POST", "PUT", "PATCH", "APPLY", "DELETE"}
_ABOUT_PODS = {"pods", "events"}


def writes_to_pods(client: ApiClient) -> Counter[str]:
    """Return how many writes to pods, and events, succeeded so far, by what they are: `PATCH pods/status`."""
    address = f"{client.configuration.host}/metrics"
    text = client.rest_client.pool_manager.request("GET", address).data.decode()
    counted = Counter[str]()
    for line in _LINE.finditer(text):
        labels = dict(_LABEL.findall(line[1]))
        if labels["verb"] in _WRITES and labels["resource"] in _ABOUT_PODS and labels["code"].startswith("2"):
            counted[_name_of(labels)] += int(float(line[2]))
    return counted


def _name_of(labels: Mapping[str, str]) -> str:
    part = f"/{labels['subresource']}" if labels["subresource"] else ""
    return f"{labels['verb']} {labels['resource']}{part}"

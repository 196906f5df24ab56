"""Which node a series is of: by the node's name, one of its addresses (with or without a port), or its host name."""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence

from extender.cluster.model import Node

HOSTNAME_LABEL = "kubernetes.io/hostname"


class NodeNames:
    """Finds nodes by what labels of series say. What two nodes are called means neither."""

    def __init__(self, nodes: Iterable[Node], labels: Sequence[str]) -> None:
        self._labels = labels
        self._names: dict[str, str | None] = {}
        self._found: dict[str, str | None] = {}  # what was looked up once: each series comes in every answer
        nodes = list(nodes)
        for node in nodes:
            for alias in {*map(_plain, node.addresses), node.labels.get(HOSTNAME_LABEL, "")} - {""}:
                self._names[alias] = None if self._names.get(alias, node.name) != node.name else node.name
        self._names |= {node.name: node.name for node in nodes}  # a name is nobody's alias

    def find(self, series: Mapping[str, str]) -> str | None:
        """Return the name of the node that the first label which names one names; None where none does."""
        for label in self._labels:
            text = series.get(label)
            if text:
                if text not in self._found:
                    self._found[text] = self._look_up(text)
                if (name := self._found[text]) is not None:
                    return name
        return None

    def _look_up(self, text: str) -> str | None:
        return self._names.get(text) or self._names.get(_plain(text)) or self._names.get(_host(text))


def _host(text: str) -> str:
    """Return the part before the port: of 10.0.0.1:9100, node-a:9100 or [fd00::1]:9100."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or (":" in host and not host.startswith("[")):
        return text
    return _plain(host)


def _plain(address: str) -> str:
    """Return an address in its shortest form, a name as it is."""
    text = address.removeprefix("[").removesuffix("]")
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text

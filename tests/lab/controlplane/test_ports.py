"""Ports are free, different, and below those of outgoing connections."""

import socket

import pytest

from lab.controlplane import ports
from lab.errors import ControlPlaneError


def test_ports_are_different_and_can_be_bound_together():
    found = ports.pick(20)
    sockets = [socket.create_server(("127.0.0.1", port)) for port in found]
    for it in sockets:
        it.close()
    assert len(set(found)) == 20
    assert all(20_000 <= port < 32_000 for port in found)


def test_a_port_in_use_is_not_picked(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(ports, "_LOWEST", taken.getsockname()[1])
        monkeypatch.setattr(ports, "_HIGHEST", taken.getsockname()[1] + 1)
        with pytest.raises(ControlPlaneError, match="no 1 free ports"):
            ports.pick(1)

"""Free ports on the loopback address."""

import secrets
import socket

from lab.errors import ControlPlaneError

_LOWEST, _HIGHEST = 20_000, 32_000


def pick(count: int) -> list[int]:
    """Return that many different free ports.

    They lie below the range that systems give to outgoing connections: a client that keeps trying a stopped
    server's port can then never be given that port itself, and a restarted server finds its port free.
    """
    free_ports: list[int] = []
    for _ in range(200 * count):
        port = _LOWEST + secrets.randbelow(_HIGHEST - _LOWEST)
        if port not in free_ports and _is_free(port):
            free_ports.append(port)
        if len(free_ports) == count:
            return free_ports
    raise ControlPlaneError(f"no {count} free ports on 127.0.0.1 between {_LOWEST} and {_HIGHEST}; end what holds them")


def pick_pair() -> int:
    """Return a free port whose next port is free too."""
    for _ in range(200):
        (port,) = pick(1)
        if _is_free(port + 1):
            return port
    raise ControlPlaneError(f"no two free ports side by side on 127.0.0.1 between {_LOWEST} and {_HIGHEST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True

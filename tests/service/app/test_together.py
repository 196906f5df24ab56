"""`serve` and `control` in one process: who listens where."""

import msgspec
import pytest

from extender.app.together import control_server
from extender.errors import SettingsError
from extender.settings import Settings


def port_of(port):
    server = msgspec.structs.replace(Settings().server, port=port)
    return control_server(msgspec.structs.replace(Settings(), server=server)).server.port


def test_control_listens_on_the_next_port():
    assert (port_of(10351), port_of(0)) == (10352, 0)


def test_the_highest_port_leaves_none_for_control():
    with pytest.raises(SettingsError, match=r"server\.port: 65535 leaves no port for control"):
        port_of(65535)

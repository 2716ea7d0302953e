"""Ports of this machine."""

import socket
from unittest.mock import patch

import pytest

from common.errors import ConfigError
from deploy.superlink import superlink as ports
from deploy.superlink.superlink import PORTS, free_port, require_free_port


def test_a_free_port_is_none_that_systems_give_to_outgoing_connections() -> None:
    found = {free_port() for _ in range(50)}
    assert len(found) > 40
    assert all(port in PORTS for port in found)
    with (
        socket.create_server(("127.0.0.1", free_port())) as server,
        socket.create_connection(server.getsockname()) as out,
    ):
        assert out.getsockname()[1] not in PORTS


def test_a_taken_port_is_not_free_and_its_option_is_named() -> None:
    other = free_port()
    with socket.create_server(("127.0.0.1", free_port())) as server:
        taken = server.getsockname()[1]
        with patch.object(ports, "PORTS", [taken] * 9 + [other]):
            assert free_port() == other
        with pytest.raises(ConfigError, match=f"port {taken} of 127.0.0.1: .*choose another with --port"):
            require_free_port("127.0.0.1", taken, "--port")

"""TCP ports of this machine."""

import random
import socket
from contextlib import suppress

from common.errors import ConfigError

PORTS = range(20_000, 32_768)
"""Ports that Linux and macOS give to no outgoing connection, so that a free one stays free."""


def free_port() -> int:
    """Return a currently unused TCP port of 127.0.0.1."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def require_free_port(host: str, port: int, option: str) -> None:
    """Check that a port is free to listen on.

    Raises:
        ConfigError: The port is taken; names the option that changes it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(f"port {port} of {host}: {error.strerror}; choose another with {option}") from None

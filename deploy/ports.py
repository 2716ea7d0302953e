"""TCP ports of this machine."""

import socket

from common.errors import ConfigError


def free_port() -> int:
    """Return a currently unused TCP port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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

"""A server that resets each connection before the client has begun TLS."""

import contextlib
import gc
import socket
import ssl
import struct
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from client.node.failures import Server, ServerAwayError, diagnose
from deploy.keys.certificates import make_authority


@pytest.mark.parametrize("encrypted", [True, False])
def test_the_probe_leaves_no_socket_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encrypted: bool) -> None:
    """Warnings are errors in tests: an unclosed socket would fail this one."""
    listener = socket.create_server(("127.0.0.1", 0))

    def reset_all() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                time.sleep(0.05)  # the client has connected, and has not wrapped its socket yet
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()

    def make_context_after_reset(*arguments: Any, **options: Any) -> ssl.SSLContext:
        time.sleep(0.1)
        return context(*arguments, **options)

    context = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", make_context_after_reset)
    threading.Thread(target=reset_all, daemon=True).start()
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    with listener:
        fault = diagnose(Server(address, make_authority(tmp_path).ca.read_bytes() if encrypted else b""))
    gc.collect()
    assert isinstance(fault, ServerAwayError)

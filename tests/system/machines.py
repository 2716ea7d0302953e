"""Machines of a test: network namespaces that a cable connects, which can be cut and healed."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

IP = shutil.which("ip") or ""


@dataclass(frozen=True)
class Machines:
    """Prefixes of commands on the machines of the server and of the clients, and the server's address.

    Args:
        server: Prefix on the server's machine.
        clients: Prefix on the clients' machine.
        address: Address of the server.
        cable: Network device of the clients; empty where both are this machine.
        spare: Prefix on another machine for the server.
        spare_address: Its address.
    """

    server: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    address: str = "127.0.0.1"
    cable: str = ""
    spare: tuple[str, ...] = ()
    spare_address: str = "127.0.0.1"

    def set_link(self, state: str) -> None:
        """Set the clients' end of the cable `up` or `down`."""
        subprocess.run([*self.clients, IP, "link", "set", self.cable, state], check=True)

    def lose(self, share: float) -> bool:
        """Lose a share of the packets that arrive at the server; return False if this system cannot."""
        rule = f"iptables -A INPUT -i cable -m statistic --mode random --probability {share} -j DROP"
        return subprocess.run([*self.server, *rule.split()], capture_output=True, check=False).returncode == 0


@contextmanager
def connected_machines() -> Iterator[Machines]:
    """Yield connected network namespaces; this machine without the right to create them."""
    server, clients, spare = (f"fedloom-{side}-{os.getpid()}" for side in ("s", "c", "n"))
    if not IP or os.geteuid() != 0 or not _ip(f"netns add {server}"):
        yield Machines()
        return
    wiring = [
        *(f"netns add {name}" for name in (clients, spare)),
        *_wire("cable", "10.99.7", server, clients),
        *_wire("cable2", "10.99.8", spare, clients),
        *(f"-n {name} link set lo up" for name in (server, clients, spare)),
    ]
    try:
        if all(map(_ip, wiring)):
            at = {name: (IP, "netns", "exec", name) for name in (server, clients, spare)}
            yield Machines(at[server], at[clients], "10.99.7.1", "cable", at[spare], "10.99.8.1")
        else:
            yield Machines()
    finally:
        for name in (server, clients, spare):
            _ip(f"netns del {name}")


def _wire(device: str, network: str, server: str, clients: str) -> list[str]:
    """Return the commands that connect the clients to a server."""
    return [
        f"link add {device} netns {server} type veth peer name {device} netns {clients}",
        *(f"-n {side} addr add {network}.{k}/24 dev {device}" for k, side in enumerate((server, clients), start=1)),
        *(f"-n {side} link set {device} up" for side in (server, clients)),
    ]


def _ip(words: str) -> bool:
    return subprocess.run([IP, *words.split()], capture_output=True, check=False).returncode == 0

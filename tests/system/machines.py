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
    """

    server: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    address: str = "127.0.0.1"
    cable: str = ""

    def set_link(self, state: str) -> None:
        """Set the clients' end of the cable `up` or `down`."""
        subprocess.run([*self.clients, IP, "link", "set", self.cable, state], check=True)

    def lose(self, share: float) -> bool:
        """Lose a share of the packets that arrive at the server; return False if this system cannot."""
        rule = f"iptables -A INPUT -i cable -m statistic --mode random --probability {share} -j DROP"
        return subprocess.run([*self.server, *rule.split()], capture_output=True, check=False).returncode == 0


@contextmanager
def connected_machines() -> Iterator[Machines]:
    """Yield two connected network namespaces; this machine without the right to create them."""
    server, clients = (f"fedloom-{side}-{os.getpid()}" for side in ("s", "c"))
    if not IP or os.geteuid() != 0 or not _ip(f"netns add {server}"):
        yield Machines()
        return
    wiring = [
        f"netns add {clients}",
        f"link add cable netns {server} type veth peer name cable netns {clients}",
        f"-n {server} addr add 10.99.7.1/24 dev cable",
        f"-n {clients} addr add 10.99.7.2/24 dev cable",
        *(f"-n {side} link set {device} up" for side in (server, clients) for device in ("cable", "lo")),
    ]
    try:
        if all(map(_ip, wiring)):
            yield Machines((IP, "netns", "exec", server), (IP, "netns", "exec", clients), "10.99.7.1", "cable")
        else:
            yield Machines()
    finally:
        for name in (server, clients):
            _ip(f"netns del {name}")


def _ip(words: str) -> bool:
    return subprocess.run([IP, *words.split()], capture_output=True, check=False).returncode == 0

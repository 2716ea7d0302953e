"""Machines of a test: network namespaces that a cable connects, which can be cut and healed."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

IP = shutil.which("ip") or ""


@dataclass(frozen=True)
class Machines:
    """Prefixes of commands on the machines of the server and of the clients, and the server's address.

    Args:
        server: Prefix on the server's machine.
        clients: Prefix on the clients' machine.
        address: Address of the server.
        spare: Prefix on another machine for the server.
        spare_address: Its address.
        others: Prefix on another machine for clients, which reach the server at `others_address`.
        others_address: Address of the server there.
        lines: Further cables from the server to the clients' machine: device -> address of the server. Without the right to
            create namespaces there are none.
    """

    server: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    address: str = "127.0.0.1"
    spare: tuple[str, ...] = ()
    spare_address: str = "127.0.0.1"
    others: tuple[str, ...] = ()
    others_address: str = "127.0.0.1"
    lines: dict[str, str] = field(default_factory=dict)

    def set_link(self, line: str, state: str) -> None:
        """Set the clients' end of a line `up` or `down`."""
        subprocess.run([*self.clients, IP, "link", "set", line, state], check=True)

    def lose(self, share: float) -> bool:
        """Lose a share of the packets that arrive at the server over lines; return False if this system cannot."""
        rule = f"iptables -A INPUT -i line+ -m statistic --mode random --probability {share} -j DROP"
        return subprocess.run([*self.server, *rule.split()], capture_output=True, check=False).returncode == 0


@contextmanager
def connected_machines(lines: int = 0) -> Iterator[Machines]:
    """Yield connected network namespaces; this machine without the right to create them."""
    names = server, clients, spare, others = tuple(f"fedloom-{side}-{os.getpid()}" for side in "scno")
    if not IP or os.geteuid() != 0 or not _ip(f"netns add {server}"):
        yield Machines()
        return
    wiring = [
        *(f"netns add {name}" for name in names[1:]),
        *_wire("cable", "10.99.7", server, clients),
        *_wire("cable2", "10.99.8", spare, clients),
        *_wire("cable3", "10.99.9", server, others),
        *(words for k in range(lines) for words in _wire(f"line{k}", f"10.99.{10 + k}", server, clients)),
        *(f"-n {name} link set lo up" for name in names),
    ]
    try:
        if all(map(_ip, wiring)):
            at = [(IP, "netns", "exec", name) for name in names]
            further = {f"line{k}": f"10.99.{10 + k}.1" for k in range(lines)}
            yield Machines(at[0], at[1], "10.99.7.1", at[2], "10.99.8.1", at[3], "10.99.9.1", further)
        else:
            yield Machines()
    finally:
        for name in names:
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

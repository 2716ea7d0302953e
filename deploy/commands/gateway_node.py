"""Process of `fedloom gateway`: a SuperLink for the clients, and a node at the server above."""

import logging
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from client.node.failures import Server
from client.state import DiskStore
from common.config.run import RunConfig
from common.errors import FedloomError, RunError
from common.node_keys import default_name, fingerprint
from common.node_names import check_name
from common.text import count
from deploy.admission import SEARCH_SECONDS, Gate
from deploy.bundle import make_app
from deploy.certificates import ensure_certificates
from deploy.child import Child
from deploy.cli.output import console
from deploy.commands.join import ServerRequest
from deploy.commands.launch import superlink_of
from deploy.commands.resident import Node, serve_node
from deploy.federation import APP, control_of
from deploy.files import read_file
from deploy.gateway import Gateway
from deploy.gateway_view import GatewayView
from deploy.keys import load_private_key
from deploy.locks import locked_home
from deploy.own_grid import own_grid
from deploy.processes import Processes
from deploy.superlink import FLOWER_HOME, SuperLinkSettings, start_superlink
from deploy.watch import QUERY_SECONDS
from server.process_records import COMMAND, record_process
from server.process_records import FOLDER as RECORDS

STATE = "gateway"
"""Folder of the accepted invitations and of the place at the server above."""


@dataclass(frozen=True)
class GatewayNode:
    """Options of a gateway.

    Args:
        above: Server above.
        ca: Its certificate authority.
        key: File of the private key at that server.
        name: Public name there; empty for one from the key.
        clients: Number of clients from which on it takes part.
        home: Folder of its own server.
        addresses: Names and addresses by which clients reach this machine.
        host: Address to listen on.
        port: Port that clients join.
        control_port: Port of the SuperLink's control, on this machine.
    """

    above: ServerRequest
    ca: Path
    key: Path
    name: str
    clients: int
    home: Path
    addresses: list[str]
    host: str
    port: int
    control_port: int


def serve_gateway(node: GatewayNode) -> None:
    """Pass requests on until a signal, or the operator's `fedloom leave`, stops the gateway.

    Raises:
        ConfigError: An option is wrong.
        ConnectError: The server above refuses this gateway, and retrying cannot help.
        RunError: The SuperLink of this gateway has ended.
    """
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs each call to the SuperLink
    key, home = load_private_key(node.key), node.home.resolve()
    name = check_name(node.name) if node.name else default_name(fingerprint(key.public_key()))
    Server(node.above.server, read_file(node.ca), key)  # fails at once if address or CA are wrong
    certificates = ensure_certificates(home, node.addresses)
    settings = superlink_of(home, certificates, node.port, node.control_port, node.host)
    console.print(
        f"gateway [bold]{name}[/]: clients join {node.host}:{node.port}, CA {home / 'ca.pem'}, keys {home / 'nodes'}; takes"
        f" part with {count(node.clients, 'client')}; its operator sees what they send to the server",
        soft_wrap=True,
    )
    with locked_home(home), Processes() as processes, _served(processes, settings, name) as keeper:
        with own_grid(settings) as grid:
            gateway = Gateway(name, grid, node.clients, DiskStore(home / STATE), home / "nodes")
            serve_node(
                node.above,
                Node(name, home / STATE, key, lambda message, context: gateway.respond(message)),
                lambda control: GatewayView(node.above.server, name, control, lambda: bool(keeper.faults)),
            )
        for fault in keeper.faults:
            raise fault


@contextmanager
def _served(processes: Processes, settings: SuperLinkSettings, name: str) -> Iterator["_Keeper"]:
    """Yield the keeper of a started SuperLink with a submitted run."""
    home = settings.folder
    record_process(home / RECORDS, COMMAND, run=name)
    superlink, control = start_superlink(processes, settings), control_of(settings)
    gate = Gate(control, home / "nodes", console)
    gate()
    gate.remove_revoked()
    run = control.submit(make_app(home / APP, RunConfig(run_id=name)), {})
    try:
        with _Keeper(superlink, gate, lambda: control.status(run).startswith("finished")) as keeper:
            yield keeper
    finally:
        for bundle in (home / APP, home / FLOWER_HOME):
            shutil.rmtree(bundle, ignore_errors=True)


@dataclass
class _Keeper:
    """Thread that keeps the keys of a SuperLink up to date, and stops the gateway when the SuperLink ends.

    Args:
        superlink: Process of the SuperLink.
        gate: Admission of its clients.
        is_over: Function that returns True if its run has ended.
    """

    superlink: Child
    gate: Gate
    is_over: Callable[[], bool]
    faults: list[FedloomError] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _asked: float = field(default_factory=time.monotonic)

    def __enter__(self) -> "_Keeper":
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _keep(self) -> None:
        try:
            while not self._ended.wait(SEARCH_SECONDS):
                self._look()
        except FedloomError as fault:
            self.faults.append(fault)
            os.kill(os.getpid(), signal.SIGTERM)

    def _look(self) -> None:
        self.superlink.check()
        self.gate()
        if time.monotonic() >= self._asked + QUERY_SECONDS:
            self._asked = time.monotonic()
            if self.is_over():
                raise RunError("the SuperLink of this gateway has ended its run; start the gateway again")

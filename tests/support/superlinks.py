"""Running SuperLink of a test, with the address, certificate and keys to join it, and a resident client of it."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from client.node.failures import Server
from client.node.resident import Answer, run_resident
from common.door.frames import MOST_VARIABLE
from deploy.federation.processes import Child, Processes
from deploy.keys.certificates import Certificates, make_authority, make_server_certificate
from deploy.keys.nodes import load_private_key, make_node_key, public_path
from deploy.superlink.control import Control, FlowerConfig
from deploy.superlink.superlink import SuperLinkSettings, free_port, start_superlink

ROOT = Path(__file__).resolve().parents[2]
NOOP = ROOT / "studies" / "speed" / "noop_app"


@dataclass
class Federation:
    """Running SuperLink, with the address, certificate and keys to join it."""

    settings: SuperLinkSettings
    certificates: Certificates
    control: Control
    processes: Processes
    superlink: Child

    @property
    def key(self) -> Path:
        """Registered key of a node."""
        return self.settings.folder / "node.key"

    def server(self, key: Path) -> Server:
        """Return the server address and identity of a key's owner."""
        return Server(self.settings.address, self.certificates.ca.read_bytes(), load_private_key(key))

    def play(self, rounds: int) -> int:
        """Run rounds of the no-op app with one node; return their number."""
        result = self.settings.folder / f"result-{time.monotonic_ns()}.json"
        config: FlowerConfig = {"nodes": 1, "rounds": rounds, "result": str(result)}
        run = self.control.submit(NOOP, config)
        end = time.monotonic() + 60
        while not (status := self.control.status(run)).startswith("finished"):
            assert time.monotonic() < end, self.settings.log.read_text()[-2000:]
            time.sleep(0.1)  # a status costs more than a round
        assert status == "finished:completed", self.settings.log.read_text()[-2000:]
        return len(json.loads(result.read_text()))


@contextmanager
def start_federation(folder: Path, *, database: bool) -> Iterator[Federation]:
    """Start a SuperLink that accepts 1 MB in a message, and register a key."""
    make_authority(folder)
    certificates = make_server_certificate(folder)
    settings = SuperLinkSettings(
        folder,
        certificates,
        authenticate=True,
        database=database,
        port=free_port(),
        control_port=free_port(),
        environment={"PYTHONPATH": str(ROOT), MOST_VARIABLE: "1"},
    )
    with Processes() as processes:
        superlink = start_superlink(processes, settings)
        federation = Federation(
            settings, certificates, Control(settings.control_address, certificates.ca), processes, superlink
        )
        make_node_key(federation.key)
        federation.control.register(public_path(federation.key))
        yield federation


@contextmanager
def run_client(federation: Federation, app: Answer) -> Iterator[list[str]]:
    """Run a resident client in a thread; yield its events."""
    stop, events = threading.Event(), list[str]()
    options = {"stop": stop, "on_event": events.append}
    client = threading.Thread(
        target=run_resident, args=(app, federation.server(federation.key)), kwargs=options, daemon=True
    )
    client.start()
    yield events
    stop.set()
    client.join(5)
    assert not client.is_alive()

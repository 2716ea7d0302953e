"""Running SuperLink of a test, with the address, certificate and keys to join it."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from client.node.failures import Server
from deploy.certificates import Certificates
from deploy.child import Child
from deploy.control import Control, RunConfig
from deploy.keys import load_private_key
from deploy.processes import Processes
from deploy.superlink import SuperLinkSettings

NOOP = Path(__file__).resolve().parents[2] / "benchmarks" / "speed" / "noop_app"


@dataclass
class Federation:
    """Running SuperLink, with the address, certificate and keys to join it."""

    settings: SuperLinkSettings
    certificates: Certificates
    control: Control
    processes: Processes
    superlink: Child

    def server(self, key: Path) -> Server:
        """Return the server address and identity of a key's owner."""
        return Server(self.settings.address, self.certificates.ca.read_bytes(), load_private_key(key))

    def play(self, rounds: int) -> int:
        """Run rounds of the no-op app with one node; return their number."""
        result = self.settings.folder / f"result-{time.monotonic_ns()}.json"
        config: RunConfig = {"nodes": 1, "rounds": rounds, "polling": "fedloom", "result": str(result)}
        run = self.control.submit(NOOP, config)
        end = time.monotonic() + 60
        while not (status := self.control.status(run)).startswith("finished"):
            assert time.monotonic() < end, self.settings.log.read_text()[-2000:]
        assert status == "finished:completed", self.settings.log.read_text()[-2000:]
        return len(json.loads(result.read_text()))

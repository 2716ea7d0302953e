"""Helpers of `fedloom up`: processes with keys and state of their own, and a policy that pins them."""

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from common.config.run import RunConfig
from common.node_keys import fingerprint
from deploy.files import write_file
from deploy.flower_programs import flower_environment
from deploy.keys import load_public_key, make_node_key, public_path
from deploy.processes import Processes
from server.process_records import FOLDER as RECORDS

WARNING = "helpers run by the server's owner protect against nobody but outsiders; let other people run them"
"""Limit of the protection that helpers of the same machine give."""

PINNED = "policy-with-helpers.toml"
"""Policy of the clients that pins the helpers, among the run's private files."""


@dataclass(frozen=True)
class OwnHelpers:
    """Helpers on this machine, ready to start.

    Args:
        homes: Name -> folder of its key, state and log.
    """

    homes: Mapping[str, Path]

    def pin(self, policy: Path | None, target: Path) -> Path:
        """Write a policy that also pins the helpers; one with own pins stays as it is.

        Args:
            policy: Policy file of the clients; None without one.
            target: File to write.
        """
        text = policy.read_text("utf-8") if policy else ""
        if policy and "helpers" in tomllib.loads(text):
            return policy
        pins = (f'{name} = "{fingerprint(load_public_key(key))}"\n' for name, key in self.keys().items())
        write_file(target, f"{text}\n[helpers]\n{''.join(pins)}".encode(), mode=0o600, overwrite=True)
        return target

    def keys(self) -> dict[str, Path]:
        """Return name -> file of the public key; missing keys are created."""
        for home in self.homes.values():
            if not (home / "node.key").exists():
                make_node_key(home / "node.key")
        return {name: public_path(home / "node.key") for name, home in self.homes.items()}

    def start(self, processes: Processes, server: str, ca: Path, patience: float) -> list[Path]:
        """Start every helper and return the files of their public keys."""
        keys = self.keys()
        for name, home in self.homes.items():
            command: list[str | Path] = [sys.executable, "-m", "deploy.cli", "helper", "--server", server, "--ca", ca]
            command += ["--key", home / "node.key", "--name", name, "--state-dir", home / "state"]
            command += ["--patience", f"{patience:g}"]
            environment, log = flower_environment({"OMP_NUM_THREADS": "1"}), home / "helper.log"
            processes.start(name, command, log=log, environment=environment, records=ca.parent / RECORDS, preload=False)
        return [*keys.values()]


def find_own_helpers(config: RunConfig, home: Path) -> OwnHelpers:
    """Return the helpers of a run with trust `helpers`; none of other runs.

    Args:
        config: Configuration of the run.
        home: Folder of the run's private files.
    """
    number = config.secure_sums.helpers if config.privacy.trust == "helpers" else 0
    return OwnHelpers({name: home / name for name in (f"helper-{k}" for k in range(1, number + 1))})

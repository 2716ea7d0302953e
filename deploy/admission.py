"""Admission of clients while a SuperLink runs: new keys are registered, revoked ones removed."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from common.errors import ConfigError, FedloomError, RunError
from deploy.control import Control
from deploy.nodes import REVOKED, list_nodes, revoked_keys

SEARCH_SECONDS = 2.0  # seconds between two searches for new and revoked keys
MAX_RETRY_SECONDS = 60.0  # maximum seconds until a key that failed is tried again


@dataclass
class Gate:
    """Keeper of the registered keys at a SuperLink; each call brings them up to date.

    Args:
        control: Control API of the SuperLink.
        folder: Folder of public keys, with revoked ones below it.
        console: Output of admitted and removed keys.
        admitted: Files of keys that are registered already.
    """

    control: Control
    folder: Path
    console: Console
    admitted: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)
    faults: dict[Path, str] = field(default_factory=dict)
    again: dict[Path, tuple[float, float]] = field(default_factory=dict)
    """Key that failed -> time of its next attempt, and the pause before it."""
    searched: float = 0.0

    def __call__(self) -> None:
        """Register new keys and remove revoked ones, at most once in `SEARCH_SECONDS`."""
        if time.monotonic() < self.searched + SEARCH_SECONDS:
            return
        for path in sorted(set((self.folder / REVOKED).glob("*.pub")) - self.removed):
            self._attempt(path, self._remove)
        for path in sorted(set(self.folder.glob("*.pub")) - self.admitted):
            self._attempt(path, self._admit)
        self.searched = time.monotonic()

    def remove_revoked(self) -> None:
        """Remove the keys that were revoked while no server ran.

        Raises:
            RunError: The SuperLink refuses.
            ConnectError: The SuperLink does not answer.
        """
        for path, key in revoked_keys(self.folder).items():
            self.control.unregister(key)
            self.removed.add(path)

    def _admit(self, path: Path) -> None:
        self.control.register(path)
        self.admitted.add(path)
        self.console.print(f"admitted {self._name(path)}", highlight=False, markup=False)

    def _remove(self, path: Path) -> None:
        name = self._name(path)
        key = revoked_keys(self.folder).get(path)
        if key is None:
            raise RunError(f"{path} holds no public key; revoke the key of {path.name} again")
        was_registered = self.control.unregister(key)
        self.removed.add(path)
        if was_registered:
            self.console.print(f"removed {name}: its key was revoked", highlight=False, markup=False)

    def _name(self, path: Path) -> str:
        """Return the name of a key; without one, the name of its file."""
        try:
            return next((e.name for e in list_nodes(self.folder) if e.file == path and e.name), path.name)
        except ConfigError:  # the file of names is being edited
            return path.name

    def _attempt(self, path: Path, step: Callable[[Path], None]) -> None:
        """Take a step with a key; after a failure, try again with exponential back-off."""
        if time.monotonic() < self.again.get(path, (0.0, 0.0))[0]:
            return
        try:
            step(path)
        except FedloomError as error:  # the file may be incomplete or the machine busy
            reason = str(error)
            if self.faults.get(path) != reason:
                self.console.print(reason, style="yellow", markup=False, soft_wrap=True)
            self.faults[path] = reason
            pause = min(2 * self.again.get(path, (0.0, SEARCH_SECONDS / 2))[1], MAX_RETRY_SECONDS)
            self.again[path] = time.monotonic() + pause, pause

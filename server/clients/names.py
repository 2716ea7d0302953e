"""Names of connected nodes by their keys: of the server's owner, or of the first enrolment."""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from common.errors import ConfigError, WireError
from common.node_names import NamedKey, default_name, file_name, fingerprint, from_pem, locked, read_names, write_names
from common.wire.hubs import MAX_CLIENTS
from server.clients.roster import REVOKED

log = logging.getLogger("fedloom.server")

REVOKED_KEY = f"the server's owner {REVOKED}; create a new key with fedloom keys node"


class NameBindings:
    """Check of the names that nodes claim against the keys that they proved.

    Args:
        folder: Folder `nodes/` of the server's owner; None if names are not bound to keys.
        list_nodes: Query of the connected nodes, as Flower describes them; their keys are empty in simulations.
    """

    def __init__(self, folder: Path | None = None, list_nodes: Callable[[], Iterable[Any]] = tuple) -> None:
        self._folder, self._list_nodes = folder, list_nodes
        self._fingerprints: dict[int, str] = {}

    def resolve(self, node: int, name: str) -> str:
        """Return the name under which a node that calls itself `name` is enrolled.

        A node with a bound name may call itself by it, or by the default name of its key. The first other name of a key is
        bound to it. The name `hub/client` belongs to the key of `hub`.

        Raises:
            WireError: The key was revoked, the name belongs to another key, or the key has another name.
        """
        if self._folder is None:
            return name
        name, slash, client = name.partition("/")
        mark = self.fingerprint(node)
        if self.revoked([node]):
            raise WireError(REVOKED_KEY)
        names = _read(self._folder)
        if (holder := names.get(name)) is not None and holder.fingerprint != mark:
            raise WireError(f"the name '{name}' belongs to another key; join with another --name")
        bound = next((registered for registered, key in names.items() if key.fingerprint == mark), "")
        if bound and name not in (bound, default_name(mark)):
            raise WireError(f"this key is registered as '{bound}'; join with --name {bound}")
        if mark and not bound and name != default_name(mark):
            self._bind(self._folder, name, mark)
        return f"{bound or name}{slash}{client}"

    def revoked(self, nodes: Iterable[int]) -> list[int]:
        """Return the nodes whose keys were revoked, also those that are not connected any more."""
        files = {path.name for path in (self._folder / "revoked").glob("*.pub")} if self._folder else set()
        return [node for node in nodes if files and f"{file_name(self._fingerprints.get(node, ''))}.pub" in files]

    def bound(self, node: int) -> str:
        """Return the name that belongs to a node's key; empty without one."""
        mark = self.fingerprint(node) if self._folder else ""
        with suppress(WireError):
            names = _read(self._folder) if self._folder and mark else {}
            return next((name for name, key in names.items() if key.fingerprint == mark), "")
        return ""

    def most_clients(self, nodes: Iterable[int]) -> dict[int, int]:
        """Return node -> number of clients that it may host; without a folder of keys, as many as it likes.

        Raises:
            WireError: The names cannot be read.
        """
        if self._folder is None:
            return dict.fromkeys(nodes, MAX_CLIENTS)
        registered = {key.fingerprint: key.clients for key in _read(self._folder).values()}
        return {node: registered.get(self.fingerprint(node), 1) for node in nodes}

    def _bind(self, folder: Path, name: str, mark: str) -> None:
        try:
            with locked(folder):
                write_names(folder, {name: NamedKey(fingerprint=mark), **read_names(folder)})
        except (OSError, ConfigError) as error:
            log.warning("the name '%s' is not bound to its key: %s", name, error)

    def fingerprint(self, node: int) -> str:
        """Return the fingerprint of a node's key; empty if it has none."""
        if node not in self._fingerprints:
            for one in self._list_nodes():
                key = from_pem(one.public_key)
                self._fingerprints[one.node_id] = fingerprint(key) if key else ""
        return self._fingerprints.get(node, "")


def _read(folder: Path) -> dict[str, NamedKey]:
    try:
        return read_names(folder)
    except ConfigError as error:
        log.warning("%s", error)
        raise WireError("the server cannot read its names of clients; ask the server's owner") from None

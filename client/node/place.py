"""Place of a client at its server, kept in the state folder so that a restarted client takes it over."""

from dataclasses import dataclass
from pathlib import Path

from common.files import write_atomically


@dataclass(frozen=True)
class Place:
    """Number of the node that the server gave to this client's key.

    The server refuses a second connection of a key until it misses the heartbeats of the first, for 20 s. A client
    that knows its number ends the first connection itself. Only the holder of the key can do so.

    Args:
        path: File of the number; None keeps no number.
    """

    path: Path | None = None

    def read(self) -> int | None:
        """Return the number of the last connection; None without one."""
        try:
            return int(self.path.read_text("ascii")) if self.path else None
        except (OSError, ValueError):
            return None

    def write(self, node_id: int) -> None:
        """Keep the number of a new connection."""
        if self.path and self.read() != node_id:
            write_atomically(self.path, str(node_id).encode(), mode=0o600)

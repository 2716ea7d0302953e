"""Files of a snapshot: for their owner only, flushed to disk, and checked when they are read."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from common.errors import StateError


@dataclass(frozen=True)
class StoredFile:
    """Size and SHA-256 of a file."""

    bytes: int
    sha256: str


def write_private(path: Path, content: bytes) -> StoredFile:
    """Write a new file and flush it to disk."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return StoredFile(len(content), hashlib.sha256(content).hexdigest())


def read_private(path: Path, stored: StoredFile | None = None) -> bytes:
    """Return the content of a file, which must be the stored one.

    Raises:
        StateError: The file is missing, a link, truncated or altered.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            content = file.read()
    except OSError as error:
        raise StateError(f"{path} cannot be read ({error.strerror})") from None
    if stored and len(content) != stored.bytes:
        raise StateError(f"{path} has {len(content):,} bytes; its manifest names {stored.bytes:,}")
    if stored and hashlib.sha256(content).hexdigest() != stored.sha256:
        raise StateError(f"{path} is damaged, or another file than its manifest names")
    return content

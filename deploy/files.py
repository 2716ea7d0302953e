"""Files that a user names: read with a clear error, written atomically."""

from pathlib import Path

from common.errors import ConfigError
from common.files import be_patient, write_atomically


def write_file(path: Path, content: bytes, *, mode: int = 0o644, overwrite: bool = False, waits: bool = True) -> None:
    """Write a file atomically when the disk has room, with permissions `mode` from its first byte.

    Missing folders are created. A write under a lock of the server does not wait: it would stop the door.

    Raises:
        ConfigError: The file exists and `overwrite` is not set.
    """
    if path.exists() and not overwrite:
        raise ConfigError(f"{path} exists; remove it or choose another path")
    path.parent.mkdir(parents=True, exist_ok=True)
    be_patient(lambda: write_atomically(path, content, mode=mode), path, waits=waits)


def read_file(path: Path, what: str = "") -> bytes:
    """Return the content of a file; an error says what it is.

    Raises:
        ConfigError: The file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {what}{path} ({error.strerror}); check the path") from None

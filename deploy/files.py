"""Files that a person names: read with a clear error, and written so that a crash leaves the old or the new, never half."""

from pathlib import Path

from common.errors import ConfigError
from common.files import write_atomically


def write_file(path: Path, content: bytes, *, mode: int = 0o644, overwrite: bool = False) -> None:
    """Write `content` to `path` atomically, with permissions `mode` from the first byte on; makes missing folders.

    Raises:
        ConfigError: The file exists and `overwrite` is not set.
    """
    if path.exists() and not overwrite:
        raise ConfigError(f"{path} exists already: remove it first, or name another place")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content, mode=mode)


def read_file(path: Path) -> bytes:
    """The content of a file.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None

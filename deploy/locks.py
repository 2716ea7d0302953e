"""Lock of a server's folder: one command serves from it at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.errors import ConfigError
from common.locks import HeldError, exclusive

FILE = "server.lock"
WAIT_SECONDS = 5.0  # seconds for a command that is being ended


@contextmanager
def locked_home(folder: Path) -> Iterator[None]:
    """Lock the folder of a server until the block or this process ends.

    Raises:
        ConfigError: Another process serves from the folder.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with exclusive(folder / FILE, WAIT_SECONDS):
            yield
    except HeldError as held:
        raise ConfigError(
            f"{folder} is in use by {held}; end it with fedloom stop --home {folder}, or use another --home"
        ) from None

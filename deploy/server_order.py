"""Stored order of a server: the run that it serves and its port, for invitations."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from common.config.flatten import flatten
from common.config.parse import parse
from common.config.run import RunConfig
from common.errors import ConfigError
from deploy.files import write_file

FILE = "order.toml"


def store_order(home: Path, config: RunConfig, port: int) -> None:
    """Write the order of a server to its folder."""
    order: Mapping[str, Any] = {"port": port, "config": flatten(config)}
    write_file(home / FILE, tomli_w.dumps(order).encode(), mode=0o600, overwrite=True)


def stored_order(home: Path) -> tuple[RunConfig, int] | None:
    """Return the newest run of a server and its port; None if it has served none.

    Raises:
        ConfigError: The file is damaged.
    """
    try:
        order = tomllib.loads((home / FILE).read_text("utf-8"))
        return parse(order["config"]), int(order["port"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{home / FILE} cannot be read; remove it") from None

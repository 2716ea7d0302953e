"""Launch record of a run: start options that its configuration lacks, as a file in its folder."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from client.data.sources import is_demo
from deploy.files import write_file

FILE = "origin.json"

Command = Literal["up", "simulate", "serve", "submit"]


@dataclass(frozen=True)
class Origin:
    """Command of a run and its partition of the data.

    Args:
        command: Command of the command line.
        data: Name of generated data; empty for read data, whose path is private, and for data of joining clients.
        clients: Value of `--clients`; 0 in a simulation is one client per unit.
        markets: Client -> markets of its shard, as its display name; empty in other tasks, whose units are private.
    """

    command: Command
    data: str
    clients: int
    markets: Mapping[str, str] = field(default_factory=dict)


def remember(run: Path, command: Command, data: str, clients: int, markets: Mapping[str, str] | None = None) -> None:
    """Write the origin of a run to its folder runs/<id>, which may not exist yet."""
    origin = Origin(command, data if is_demo(data) else "", clients, markets or {})
    write_file(run / FILE, json.dumps(asdict(origin)).encode(), overwrite=True)


def origin_of(run: Path) -> Origin | None:
    """Return the stored origin; None for a run that was started otherwise, or by another release."""
    try:
        return Origin(**json.loads((run / FILE).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def is_simulation(run: Path) -> bool:
    """Return True if the run was started by `fedloom simulate`."""
    origin = origin_of(run)
    return origin is not None and origin.command == "simulate"

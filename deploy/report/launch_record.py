"""How a run was started on this machine, where its configuration does not say: a file beside it."""

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
    """The command, and how it dealt the data.

    Args:
        command: Of the command line.
        data: Made data as they are called; empty for read ones, whose place is their owner's affair, and for those of clients
            that join.
        clients: `--clients`; 0 in a simulation is one a home, one a visitor.
        markets: Client -> the markets that it was dealt, to call it by; empty in other tasks, whose people are private.
    """

    command: Command
    data: str
    clients: int
    markets: Mapping[str, str] = field(default_factory=dict)


def remember(run: Path, command: Command, data: str, clients: int, markets: Mapping[str, str] | None = None) -> None:
    """Note the origin of the run in the folder runs/<id>, which may not exist yet."""
    origin = Origin(command, data if is_demo(data) else "", clients, markets or {})
    write_file(run / FILE, json.dumps(asdict(origin)).encode(), overwrite=True)


def origin_of(run: Path) -> Origin | None:
    """What `remember` noted; None of a run started otherwise, or by another release."""
    try:
        return Origin(**json.loads((run / FILE).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None

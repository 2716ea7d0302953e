"""Status of the federations of a working directory, and the stored order of each server."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tomli_w

from common.config.keys import respell
from common.config.parse import flatten, parse
from common.config.run import RunConfig
from common.errors import ConfigError
from deploy.federation.stop import find_servers
from deploy.files import write_file
from server.record.events import Event, Finish, Refusal, Round, Start, Waiting
from server.record.folder import RunDirectory
from server.record.process import FOLDER, ProcessRecord, read_records

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
        return parse(respell(order["config"])), int(order["port"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{home / FILE} cannot be read; remove it") from None


State = Literal["starting", "waiting", "training", "completed", "failed", "stopped"]


@dataclass(frozen=True)
class ServerStatus:
    """Status of one server and of its newest run.

    Args:
        home: Folder of the server.
        run: Name of the run.
        state: State of the run; `stopped` if it is unfinished and no process works on it.
        processes: Running processes of the federation.
        start: Start of the run; None before its clients have enrolled.
        last: Newest completed round.
        waiting: Wait for clients that is not over.
        finish: End of the run.
        absent: Names that are registered here and not connected while the run waits.
    """

    home: str
    run: str
    state: State
    processes: tuple[ProcessRecord, ...] = ()
    start: Start | None = None
    last: Round | None = None
    waiting: Waiting | None = None
    finish: Finish | None = None
    absent: tuple[str, ...] = ()


def read_servers(local: Path, runs: Path, home: Path | None = None) -> Iterator[ServerStatus]:
    """Yield the status of the server in `home`, or of those below `local` of `serve` and of running `up`."""
    for folder in [home] if home else find_servers(local):
        processes = read_records(folder / FOLDER)
        run = next((one.run for one in reversed(processes) if one.run), "") or _ordered_run(folder)
        if run:
            yield _read_server(folder, RunDirectory(runs, run), tuple(processes))


def _read_server(home: Path, run: RunDirectory, processes: tuple[ProcessRecord, ...]) -> ServerStatus:
    start, last, waiting, finish = _newest(run.events())
    state: State = "waiting" if waiting else "training" if start else "starting"
    state = finish.status if finish else state if processes else "stopped"
    waiting = waiting if state == "waiting" else None
    absent = _absent(home, waiting) if waiting else ()
    return ServerStatus(str(home), run.path.name, state, processes, start, last, waiting, finish, absent)


def _newest(events: Iterable[Event]) -> tuple[Start | None, Round | None, Waiting | None, Finish | None]:
    """Return the newest event of each kind; a wait and a finish end with the next event."""
    start: Start | None = None
    last: Round | None = None
    waiting: Waiting | None = None
    finish: Finish | None = None
    for event in events:
        if isinstance(event, Refusal):
            continue
        waiting = event if isinstance(event, Waiting) else None
        finish = event if isinstance(event, Finish) else None
        start = event if isinstance(event, Start) else start
        last = event if isinstance(event, Round) else last
    return start, last, waiting, finish


def _absent(home: Path, waiting: Waiting) -> tuple[str, ...]:
    from deploy.keys.nodes import list_nodes  # cryptography, only where it is needed

    names = (entry.name for entry in list_nodes(home / "nodes") if entry.state == "registered")
    return tuple(name for name in names if name and name not in waiting.online)


def _ordered_run(home: Path) -> str:
    """Return the newest run that `serve` stored in its folder; empty if there is none."""
    try:
        return str(tomllib.loads((home / FILE).read_text("utf-8"))["config"]["run-id"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""

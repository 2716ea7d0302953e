"""Stored runs on this machine: look-up, launch record and removal."""

import json
import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from client.data.dataset import is_demo
from common.config.keys import respell
from common.errors import ConfigError
from common.files import FORMAT, check_format
from common.options import Scalar
from common.tasks.registry import TASKS
from deploy.files import write_file
from server.record.folder import EVENTS_FILE, LOCK_FILE, RunDirectory
from server.settings import ServerSettings


def runs_folder() -> Path:
    """Return the absolute path of the folder of runs; other processes receive it."""
    return ServerSettings().runs.resolve()


def find_run(name: str) -> RunDirectory:
    """Return a run by its name, or by its folder anywhere.

    Raises:
        ConfigError: The run does not exist.
    """
    given = Path(name)
    is_folder = (given / "config.toml").exists()
    folder = (
        RunDirectory(given.resolve().parent, given.resolve().name) if is_folder else RunDirectory(runs_folder(), name)
    )
    folder.config()
    return folder


def stored_options(folder: RunDirectory) -> dict[str, Scalar]:
    """Return the dotted keys of a run's config.toml.

    Raises:
        ConfigError: The run does not exist, or the file holds other values than options.
    """
    stored = folder.config()
    if not all(isinstance(value, (bool, int, float, str)) for value in stored.values()):
        raise ConfigError(f"{folder.path / 'config.toml'} holds values that are no options; restore the file")
    return respell(stored)


def newest(tasks: Collection[str] = TASKS) -> RunDirectory:
    """Return the newest completed run of one of the tasks.

    Raises:
        ConfigError: No such run has completed.
    """
    if run := newest_or_none(tasks):
        return run
    alone = next(iter(tasks)) if len(tasks) == 1 else ""
    what, how = (f"{alone} run", f"fedloom up --task {alone}") if alone else ("run", "fedloom up")
    raise ConfigError(f"no completed {what} in {runs_folder()}; train one first, for example with `{how}`")


def newest_or_none(tasks: Collection[str] = TASKS) -> RunDirectory | None:
    """Return the newest completed run of one of the tasks; None if there is none."""
    results = sorted(runs_folder().glob("*/result.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in results:
        result = json.loads(path.read_text("utf-8"))
        if result["status"] == "completed" and result["task"] in tasks:
            return RunDirectory(path.parents[1], path.parent.name)
    return None


FILE = "origin.json"

Command = Literal["up", "simulate", "serve", "submit"]


@dataclass(frozen=True)
class Origin:
    """Command of a run and its partition of the data.

    Args:
        command: Command of the command line.
        data: Name of generated data; empty for read data, whose path is private, and for data of joining clients.
        clients: Value of `--clients`; 0 in a simulation is one client per unit.
        scheme: Scheme of the partition, such as `dirichlet:0.3`; empty for the default one.
        markets: Client -> markets of its shard, as its display name; empty in other tasks, whose units are private.
    """

    command: Command
    data: str
    clients: int
    markets: Mapping[str, str] = field(default_factory=dict)
    scheme: str = ""


def remember(
    run: Path, command: Command, data: str, clients: int, markets: Mapping[str, str] | None = None, scheme: str = ""
) -> None:
    """Write the origin of a run to its folder runs/<id>, which may not exist yet."""
    origin = Origin(command, data if is_demo(data) else "", clients, markets or {}, scheme)
    write_file(run / FILE, origin_to_json(origin), overwrite=True)


def origin_to_json(origin: Origin) -> bytes:
    """Return the content of the file."""
    return json.dumps({FORMAT: 1, **asdict(origin)}).encode()


def origin_of(run: Path) -> Origin | None:
    """Return the stored origin; None for a run that was started otherwise.

    Raises:
        NewerFormatError: A newer program wrote the file.
    """
    try:
        fields = json.loads((run / FILE).read_text("utf-8"))
        check_format(run / FILE, fields.pop(FORMAT, 1))
        return Origin(**fields)
    except (OSError, ValueError, TypeError, AttributeError):
        return None


@contextmanager
def removed_unless_started(run_id: str) -> Iterator[None]:
    """Remove the folder that a command made for its run if the block fails before the run starts."""
    try:
        yield
    except BaseException:
        folder = runs_folder() / run_id
        if not (folder / "config.toml").exists():
            for name in (FILE, LOCK_FILE):
                (folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # a folder with other files is not ours
                folder.rmdir()
        raise


TRASH = ".trash"
"""Folder below the folder of runs that holds removed runs."""

UNIT_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}


def stored_runs(root: Path) -> list[RunDirectory]:
    """Return the runs in a folder, newest first; links are left out."""
    folders = [path for path in root.glob("[!.]*") if (path / "config.toml").is_file() and not path.is_symlink()]
    return [RunDirectory(root, path.name) for path in sorted(folders, key=lambda path: _changed(path), reverse=True)]


def read_age(text: str) -> float:
    """Return the seconds of an age such as 30d.

    Raises:
        ConfigError: The text is no age.
    """
    if match := re.fullmatch(r"([0-9]{1,6})([hdw])", text):
        return int(match[1]) * UNIT_SECONDS[match[2]]
    raise ConfigError(f"--older-than {text} is not an age; write hours, days or weeks, such as 12h, 30d or 8w")


def select_older(runs: Sequence[RunDirectory], seconds: float) -> list[RunDirectory]:
    """Return the idle runs whose files have not changed for that time."""
    return [run for run in runs if time.time() - _changed(run.path) >= seconds and run.is_idle()]


def find_removable(root: Path, name: str) -> RunDirectory:
    """Return the run of that name.

    Raises:
        ConfigError: There is no such run, its folder is a link, or a process works on it.
    """
    run = RunDirectory(root, name)
    if run.path.is_symlink():
        raise ConfigError(f"{run.path} is a link to a folder elsewhere; remove the link by hand")
    if not (run.path / LOCK_FILE).exists():  # locking would create the folder of a run that does not exist
        run.config()
    with run.lock():
        return run


def remove(runs: Sequence[RunDirectory], root: Path, *, now: bool) -> Iterator[Path]:
    """Remove runs and yield each new place; the old place if nothing is left there.

    Raises:
        ConfigError: A process works on a run, or the trash folder is a link.
    """
    trash = root / TRASH
    if trash.is_symlink() and not now:
        raise ConfigError(f"{trash} is a link to a folder elsewhere; remove the link by hand")
    for run in runs:
        with run.lock():
            if now:
                shutil.rmtree(run.path)
                yield run.path
                continue
            target = trash / run.path.name
            if target.exists():
                target = trash / f"{run.path.name}.{time.time_ns()}"
            trash.mkdir(exist_ok=True)
            run.path.rename(target)
            yield target


def _changed(path: Path) -> float:
    """Return the time of the last change of a run's folder or of its events."""
    return max(file.stat().st_mtime for file in (path, path / EVENTS_FILE) if file.exists())

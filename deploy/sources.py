"""What clients on this machine are given to train on, and the vocabulary that goes with it.

How homes are dealt to clients is decided here, once, so that a federation of processes and a simulation agree.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from client.data.rules.homes import Dataset
from client.data.rules.ifttt import is_recrules
from client.data.rules.partition import partition
from client.data.rules.reader import read_homes
from client.data.rules.shards import demo_shard
from client.data.rules.table import SUFFIXES, write_table
from common.errors import ConfigError, DataError
from common.tasks.rules import Catalogue
from deploy.federation import ClientSpec
from deploy.files import write_file


def read_catalogue(path: Path | None) -> Catalogue | None:
    """A vocabulary file; None gives None.

    Raises:
        DataError: The file is missing or no vocabulary.
    """
    if path is None:
        return None
    try:
        return Catalogue.from_json(path.read_text("utf-8"))
    except OSError as error:
        raise DataError(error.strerror or "cannot be read", path) from None


def deal(data: str, known: Catalogue | None, clients: int = 0) -> list[Dataset]:
    """Each client's part of a source, 0 clients meaning one a home.

    As many tables in a folder as there are clients: one client a table. Demo homes are cut in order, as clients of the demo
    make their own; all other homes are dealt out by a hash of their users.

    Raises:
        DataError: The data cannot be read, or have fewer homes than there are clients.
    """
    whole = read_homes(data, known)
    count = clients or len(whole.homes)
    if len(tables := _tables(data)) == clients > 0:
        return [read_homes(table, whole.catalogue) for table in tables]
    shares = partition(whole.homes, count, seed=0)  # also refuses more clients than homes
    if data.startswith("demo"):
        return [read_homes(demo_shard(data, (k, count)), whole.catalogue) for k in range(count)]
    return [replace(whole, homes=share) for share in shares]


def notes(parts: Sequence[Dataset]) -> list[str]:
    """What a person should know of the reading, each note once."""
    return list(dict.fromkeys(note for part in parts for note in part.notes))


def share_out(data: str, parts: Sequence[Dataset], home: Path) -> list[ClientSpec]:
    """Give each client its part in its own folder below `home`; a client of the demo makes its homes itself."""
    count, tables = len(parts), _tables(data)
    specs = []
    for k, part in enumerate(parts):
        own = home / f"client-{k}"
        if data.startswith("demo"):
            source = demo_shard(data, (k, count))
        elif len(tables) == count:
            source = str(tables[k].resolve())
        else:
            source = str(own / "homes.csv")
            own.mkdir(parents=True, exist_ok=True)
            Path(source).touch(mode=0o600)
            write_table(Path(source), part.homes, part.catalogue)
        specs.append(ClientSpec(own.name, source, own))
    remembered = [{**asdict(spec), "home": str(spec.home)} for spec in specs]
    write_file(home / "clients.json", json.dumps(remembered).encode(), overwrite=True)
    return specs


def shared_out(home: Path) -> list[ClientSpec]:
    """The clients that `share_out` left in `home`, for a run that goes on.

    Raises:
        ConfigError: There are none.
    """
    try:
        remembered = json.loads((home / "clients.json").read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"the clients of run '{home.name}' are not in {home.parent}: resume where, and with the command, it was started"
        ) from None
    return [ClientSpec(**{**spec, "home": Path(spec["home"])}) for spec in remembered]


def _tables(data: str) -> list[Path]:
    """The tables of a folder of tables."""
    folder = Path(data)
    if not folder.is_dir() or is_recrules(folder):
        return []
    return sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES)

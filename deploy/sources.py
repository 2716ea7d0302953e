"""What clients on this machine are given to train on, and the vocabulary that goes with it.

How a source is dealt to clients is decided here, once, so that a federation of processes and a simulation agree.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from client.data.parts import Part, deal, demo_part, read_all, vocabulary
from client.data.sources import is_demo
from client.data.tables import TABLES, tables, write_part
from common.config import Task
from common.errors import ConfigError, DataError
from common.tasks.vocabularies import Names, vocabulary_of
from deploy.federation import ClientSpec
from deploy.files import write_file


def read_catalogue(task: Task, path: Path | None) -> Names | None:
    """A vocabulary file; None gives None.

    Raises:
        DataError: The file is missing or no vocabulary.
    """
    if path is None:
        return None
    try:
        return vocabulary_of(task, path.read_text("utf-8"))
    except OSError as error:
        raise DataError(error.strerror or "cannot be read", path) from None
    except DataError as error:
        raise DataError(str(error), path) from None


def parts_of(task: Task, data: str, known: Names | None, clients: int = 0) -> Sequence[Part]:
    """Each client's part of a source, 0 clients meaning one a home or visitor.

    As many tables in a folder as there are clients: one client a table. Embedded data are cut in order, as clients make their
    own; all other data are dealt out by a hash of their users.

    Raises:
        DataError: The data cannot be read, or cannot be dealt to so many clients.
    """
    whole = read_all(task, data, known=known)
    if len(own := tables(task, data)) == clients > 0:
        return [read_all(task, str(table), known=vocabulary(whole)) for table in own]
    dealt = deal(whole, clients)  # also refuses more clients than there is to deal
    if not is_demo(data):
        return dealt
    count = len(dealt)
    return [read_all(task, demo_part(task, data, (k, count)), known=vocabulary(whole)) for k in range(count)]


def notes(parts: Sequence[Part]) -> list[str]:
    """What a person should know of the reading, each note once."""
    return list(dict.fromkeys(note for part in parts for note in part.notes))


def share_out(task: Task, data: str, parts: Sequence[Part], home: Path) -> list[ClientSpec]:
    """Give each client its part in its own folder below `home`; a client of the demo makes its data itself."""
    count, own_tables = len(parts), tables(task, data)
    specs = []
    for k, part in enumerate(parts):
        own = home / f"client-{k}"
        if is_demo(data):
            source = demo_part(task, data, (k, count))
        elif len(own_tables) == count:
            source = str(own_tables[k].resolve())
        else:
            source = str(own / TABLES[task])
            write_part(Path(source), part)
        specs.append(ClientSpec(own.name, task, source, own))
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

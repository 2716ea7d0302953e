"""What clients on this machine are given to train on, and the vocabulary that goes with it.

How a source is dealt to clients is decided here, once, so that a federation of processes and a simulation agree.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from client.data.dataset import AnyDataset
from client.data.read import demo_partition, own_tables, partition, read_all
from client.data.sources import is_demo, located
from client.data.tables.schema import DEFAULT_DIALECT, Dialect
from client.policy import Policy
from client.tasks.registry import CLIENT_TASKS
from common.config.run import RunConfig
from common.errors import ConfigError, DataError
from common.tasks.registry import read_vocabulary
from common.tasks.vocabulary import Vocabulary
from deploy.federation import ClientSpec
from deploy.files import write_file
from deploy.partitioning import Partitioning

USUAL, MOST = 4, 8
"""Client processes where nobody says a number: as a rule, and at most."""


def read_catalogue(task: str, path: Path | None) -> Vocabulary | None:
    """A vocabulary file; None gives None.

    Raises:
        DataError: The file is missing or no vocabulary.
    """
    if path is None:
        return None
    try:
        return read_vocabulary(task, path.read_text("utf-8-sig"))
    except OSError as error:
        raise DataError(error.strerror or "cannot be read", path) from None
    except UnicodeDecodeError:
        raise DataError("no UTF-8 text; save it as such", path) from None
    except DataError as error:
        raise DataError(str(error), path) from None


def parts_of(
    task: str,
    data: str,
    known: Vocabulary | None,
    clients: int | None = 0,
    dialect: Dialect = DEFAULT_DIALECT,
) -> Sequence[AnyDataset]:
    """Each client's part of a source, 0 clients meaning one a home or visitor, None a few processes (`_few`).

    As many tables in a folder as there are clients: one client a table. Embedded data are cut in order, as clients make their
    own; all other data are dealt out by a hash of their users.

    Raises:
        DataError: The data cannot be read, or cannot be dealt to so many clients.
    """
    whole, own = read_all(task, data, vocabulary=known, dialect=dialect), own_tables(task, data)
    clients = _few(task, whole, len(own)) if clients is None else clients
    if len(own) == clients > 0:
        return [read_all(task, str(table), vocabulary=whole.vocabulary, dialect=dialect) for table in own]
    dealt = partition(whole, clients, unit=CLIENT_TASKS[task].unit)  # also refuses more clients than units
    if not is_demo(data):
        return dealt
    count = len(dealt)
    sources = [demo_partition(task, data, (k, count)) for k in range(count)]
    return [read_all(task, source, vocabulary=whole.vocabulary) for source in sources]


def _few(task: str, whole: AnyDataset, tables: int) -> int:
    """Return the number of clients where nobody sets one: one per unit or per table, up to `MOST`."""
    if CLIENT_TASKS[task].client_per_unit:
        return min(len(whole.units), MOST)
    return tables if 1 < tables <= MOST else USUAL


def unit_names(task: str, parts: Sequence[AnyDataset]) -> dict[str, str]:
    """Return client -> the names of its units, for tasks whose units are public."""
    if not CLIENT_TASKS[task].public_units:
        return {}
    return {f"client-{k}": " + ".join(unit.name for unit in part.units) for k, part in enumerate(parts)}


def warnings(config: RunConfig, parts: Sequence[AnyDataset]) -> Iterable[str]:
    """Return what the owner should know about the data of all clients before training."""
    units = tuple(unit for part in parts for unit in part.units)
    return CLIENT_TASKS[config.task].warnings(config.task_options, replace(parts[0], units=units))


def notes(parts: Sequence[AnyDataset]) -> list[str]:
    """What a person should know of the reading, each note once."""
    return list(dict.fromkeys(note for part in parts for note in part.notes))


def share_out(
    task: str,
    data: str,
    parts: Sequence[AnyDataset],
    home: Path,
    dealt: Path,
    dialect: Dialect = DEFAULT_DIALECT,
) -> list[ClientSpec]:
    """Give each client its part and a folder of its own below `home`; a client of the demo makes its data itself.

    Own data, and what must outlive a run beside them, lie below `dealt`. The dialect is that of the owner's tables; those
    written here need none.
    """
    homes = [home / f"client-{k}" for k in range(len(parts))]
    if is_demo(data):
        made = [demo_partition(task, data, (k, len(parts))) for k in range(len(parts))]
        specs = [ClientSpec(own.name, task, source, own) for own, source in zip(homes, made, strict=True)]
    else:
        dealing = Partitioning(dealt, task, located(data), len(parts))
        shares = [str(share) for share in dealing.deal(parts)]
        owned = {str(table.resolve()) for table in own_tables(task, data)}
        specs = [
            ClientSpec(
                own.name,
                task,
                share,
                own,
                state=dealing.state,
                source=dealing.data,
                dialect=dialect.options if share in owned else (),
            )
            for own, share in zip(homes, shares, strict=True)
        ]
    remembered = json.dumps([asdict(spec) for spec in specs], default=str)
    write_file(home / "clients.json", remembered.encode(), overwrite=True)
    return specs


def require_one_budget(config: RunConfig, policy: Policy, data: str, clients: int, dealt: Path) -> None:
    """Where noise is asked for or required, accept own data that have spent no privacy but as dealt to so many clients.

    Raises:
        ConfigError: They have.
        LedgerError: A ledger is gone or damaged.
    """
    noisy = config.privacy.unit != "none" or (
        config.task_options.count_offset and config.task_options.count_privacy.unit != "none"
    )
    if data and not is_demo(data) and (noisy or policy.require_noise):
        Partitioning(dealt, config.task, located(data), clients).require_one_budget()


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
    return [_remembered(**spec) for spec in remembered]


def _remembered(home: str, state: str | None = None, dialect: Sequence[str] = (), **rest: Any) -> ClientSpec:
    return ClientSpec(home=Path(home), state=Path(state) if state else None, dialect=tuple(dialect), **rest)

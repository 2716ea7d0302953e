"""What clients on this machine are given to train on, and the vocabulary that goes with it.

How a source is dealt to clients is decided here, once, so that a federation of processes and a simulation agree.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from client.data.own_tables import tables
from client.data.read import Part, deal, demo_part, read_all, vocabulary
from client.data.sources import is_demo, located
from client.policy import Policy
from client.tasks.markets.data.markets import Markets
from common.config.run import RunConfig, Task
from common.errors import ConfigError, DataError
from common.tasks.vocabularies import Names, vocabulary_of
from deploy.federation import ClientSpec
from deploy.files import write_file
from deploy.partitioning import Partitioning

USUAL, MOST = 4, 8
"""Client processes where nobody says a number: as a rule, and at most."""


def read_catalogue(task: Task, path: Path | None) -> Names | None:
    """A vocabulary file; None gives None.

    Raises:
        DataError: The file is missing or no vocabulary.
    """
    if path is None:
        return None
    try:
        return vocabulary_of(task, path.read_text("utf-8-sig"))
    except OSError as error:
        raise DataError(error.strerror or "cannot be read", path) from None
    except UnicodeDecodeError:
        raise DataError("no UTF-8 text; save it as such", path) from None
    except DataError as error:
        raise DataError(str(error), path) from None


def parts_of(task: Task, data: str, known: Names | None, clients: int | None = 0) -> Sequence[Part]:
    """Each client's part of a source, 0 clients meaning one a home or visitor, None a few processes (`_few`).

    As many tables in a folder as there are clients: one client a table. Embedded data are cut in order, as clients make their
    own; all other data are dealt out by a hash of their users.

    Raises:
        DataError: The data cannot be read, or cannot be dealt to so many clients.
    """
    whole, own = read_all(task, data, known=known), tables(task, data)
    clients = _few(whole, len(own)) if clients is None else clients
    if len(own) == clients > 0:
        return [read_all(task, str(table), known=vocabulary(whole)) for table in own]
    dealt = deal(whole, clients)  # also refuses more clients than there is to deal
    if not is_demo(data):
        return dealt
    count = len(dealt)
    return [read_all(task, demo_part(task, data, (k, count)), known=vocabulary(whole)) for k in range(count)]


def _few(whole: Part, own_tables: int) -> int:
    """Clients where nobody says how many: one a market, since each is a shop of its own, or one a table, up to `MOST`."""
    if isinstance(whole, Markets):
        return min(len(whole.markets), MOST)
    return own_tables if 1 < own_tables <= MOST else USUAL


def markets_of(parts: Sequence[Part]) -> dict[str, str]:
    """Client -> the names of its markets."""
    told = {f"client-{k}": part.markets for k, part in enumerate(parts) if isinstance(part, Markets)}
    return {client: " + ".join(market.name for market in markets) for client, markets in told.items()}


def notes(parts: Sequence[Part]) -> list[str]:
    """What a person should know of the reading, each note once."""
    return list(dict.fromkeys(note for part in parts for note in part.notes))


def share_out(task: Task, data: str, parts: Sequence[Part], home: Path, dealt: Path) -> list[ClientSpec]:
    """Give each client its part and a folder of its own below `home`; a client of the demo makes its data itself.

    Own data, and what must outlive a run beside them, lie below `dealt`.
    """
    homes = [home / f"client-{k}" for k in range(len(parts))]
    if is_demo(data):
        made = [demo_part(task, data, (k, len(parts))) for k in range(len(parts))]
        specs = [ClientSpec(own.name, task, source, own) for own, source in zip(homes, made, strict=True)]
    else:
        dealing = Partitioning(dealt, task, located(data), len(parts))
        shares = [str(share) for share in dealing.deal(parts)]
        specs = [
            ClientSpec(own.name, task, share, own, state=dealing.state, source=dealing.data)
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
    noisy = config.privacy.unit != "none" or (config.task_options.count_offset and config.count_privacy.unit != "none")
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


def _remembered(home: str, state: str | None = None, **rest: Any) -> ClientSpec:
    return ClientSpec(home=Path(home), state=Path(state) if state else None, **rest)

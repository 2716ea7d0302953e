"""Privacy budgets of data on this machine: one for each data set, and their increase."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from client.data.dataset import fingerprint_of_all, is_demo, resolve_source
from client.data.read import find_own_tables
from client.owner.policy import Policy
from client.privacy.claim import Statement, read_statements
from client.privacy.ledger.ledger import increase_budget
from client.privacy.ledger.locate import (
    LINEAGES,
    absolute_source,
    data_path,
    find_all_ledgers,
    find_ledger,
    ledger_path,
    rollback_path,
)
from client.privacy.ledger.roll_back import RollbackRecord, read_heads
from common.config.run import RunConfig
from common.errors import ConfigError, DataError, LedgerError
from common.text import count
from deploy.cli.options import LOCAL
from deploy.cli.output import note
from deploy.data.partitions import (
    PARTITIONS,
    STATE,
    Partitioning,
    folder_ledger,
    partition_ledgers,
    partitionings_of,
    table_ledgers,
)

REMEDY = "restore the folder as it was, or train without noise"


def require_one_budget(config: RunConfig, policy: Policy, data: str, clients: int, root: Path) -> None:
    """Refuse data, in a run with noise, if a different partitioning of them has spent budget.

    Raises:
        ConfigError: Other clients have spent budget of these data.
        LedgerError: A ledger is missing or damaged.
    """
    if data and not is_demo(data) and (config.privacy.unit != "none" or policy.require_noise):
        check_partitioning(Partitioning(root, config.task, resolve_source(data), clients))


def require_unpartitioned(root: Path, data: str) -> None:
    """Refuse all data for one client if a client with a partition of them has released anything.

    Raises:
        ConfigError: Such a client has; this client would have a second budget for the same units.
        LedgerError: A ledger is missing or damaged.
    """
    if not is_demo(data) and _released(partition_ledgers(root, data)):
        raise ConfigError(
            f"the privacy budget of {data_path(data)} was spent by clients of fedloom up, and a client with all of it"
            " would have a second one; train with fedloom up again"
        )


def check_partitioning(partitioning: Partitioning) -> None:
    """Refuse data if anyone but the clients of this partitioning has released noisy results of them.

    Raises:
        ConfigError: Another client has; this partitioning would have a second budget for the same units.
        LedgerError: A ledger is missing or damaged.
    """
    data, second = data_path(partitioning.data), f"and {count(partitioning.clients, 'client')} would have a second one"
    for other in _others(partitioning):
        if _released(other.ledgers()):
            remedy = f"--clients {other.clients}" + (f" --task {other.task}" if other.task != partitioning.task else "")
            raise ConfigError(f"{_spent(data)} {count(other.clients, 'client')}, {second}; set {remedy}")
    has_tables = bool(partitioning.own_tables())
    if has_tables and _released(partitioning.ledgers_of(partitioning.written_tables())):
        raise ConfigError(f"{_spent(data)} {count(partitioning.clients, 'client')} before each had a table; {REMEDY}")
    source = data.resolve()
    if not has_tables and source.is_dir() and _released(table_ledgers(source)):
        raise ConfigError(f"{_spent(source)} clients with a table each, {second}; {REMEDY}")
    joined = [ledger_path(partitioning.data, partitioning.state, ""), *folder_ledger(source)]
    if _released([path for path in joined if path.exists()]):
        remedy = "join with it again (fedloom join), or train without noise"
        raise ConfigError(f"{_spent(data)} a client that joined with it, {second}; {remedy}")


def _spent(data: Path) -> str:
    return f"the privacy budget of {data} was spent by"


def _others(partitioning: Partitioning) -> Iterator[Partitioning]:
    tables = len(find_own_tables(partitioning.task, partitioning.data))
    pairs = {*partitionings_of(partitioning.root, partitioning.data), (partitioning.task, tables)}
    for task, clients in sorted(pairs):
        if (task, clients) != (partitioning.task, partitioning.clients):
            yield replace(partitioning, task=task, clients=clients)


def _released(ledgers: Sequence[Path]) -> bool:
    return any(one.runs for path in ledgers for one in read_statements(path))


def list_statements(data: str, state_dir: Path, ledgers: Path | None) -> tuple[list[Statement], list[LedgerError]]:
    """Return the statements, and the errors of unreadable ledgers."""
    folders = _lineage_folders(state_dir)
    places = list(_ledgers_of(data, state_dir, ledgers) if data else find_all_ledgers(folders))
    broken = [error for error in places if isinstance(error, LedgerError)]
    found: list[Statement] = []
    for path in sorted({path for path in places if isinstance(path, Path)}):
        try:
            found += read_statements(path, folders)
        except LedgerError as error:
            broken.append(error)
    return found, broken


def raise_limit(epsilon: float, data: str, state_dir: Path, ledgers: Path | None) -> None:
    """Raise the limit in every ledger of these data.

    Raises:
        ConfigError: No data are named, or no limit would rise.
        LedgerError: A ledger is missing or behind its roll-back record, or a running client uses it.
    """
    if not data:
        raise ConfigError("--raise-to needs --data; name the data file or folder whose budget is raised")
    found = _ledgers_of(data, state_dir, ledgers)
    if not found:
        raise ConfigError("these data have no ledger, so no limit is fixed; set max-epsilon in the policy file")
    folders = _lineage_folders(state_dir)
    for path in found:  # an increase of an older copy would block the newest permanently
        read_statements(path, folders)
    unraised: list[ConfigError] = []
    for path in found:
        record = next((record for record, head in read_heads(folders) if head.ledger == str(path)), None)
        if record is None:  # data without state here
            record = RollbackRecord(rollback_path(state_dir, fingerprint_of_all(data)), absolute_source(data))
        try:
            rows = increase_budget(path, epsilon, record)
        except ConfigError as error:
            unraised.append(error)
            continue
        for row in rows:
            limit = f"unit {row.unit}: ε = {row.raised.epsilon:g} instead of {row.raised.before:g}"
            note(f"{limit}, once max-epsilon in the client's policy file allows it")
    if len(unraised) == len(found):
        raise unraised[0]
    for reason in unraised:
        note(str(reason))


def _ledgers_of(data: str, state_dir: Path, ledgers: Path | None) -> list[Path]:
    """Return the ledgers of these data, and of the partitions that `fedloom up` made of them.

    Raises:
        DataError: The data do not exist.
        LedgerError: A ledger of them is missing.
    """
    if not is_demo(data) and not data_path(data).exists():
        raise DataError("no such file or folder", data)
    path = find_ledger(data, state_dir, fingerprint_of_all(data), ledgers)
    others = [] if is_demo(data) else partition_ledgers(PARTITIONS, data)
    return sorted({path, *others} if path.exists() else set(others))


def _lineage_folders(state_dir: Path) -> list[Path]:
    """Return the folders of roll-back records: the owner's, and those of federations of `fedloom up`."""
    roots = (state_dir, PARTITIONS / STATE, *(LOCAL / "up").glob("*/client-*/state"))
    return [root / LINEAGES for root in roots]

"""Checks that a data set has one privacy budget, however it is partitioned among clients."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from client.data.read import find_own_tables
from client.data.sources import is_demo, resolve_source
from client.policy import Policy
from client.privacy.claim import read_statements
from client.privacy.ledger.locate import data_path, ledger_path
from common.config.run import RunConfig
from common.errors import ConfigError
from common.text import count
from deploy.partitioning import Partitioning, folder_ledger, partition_ledgers, partitionings_of, table_ledgers

REMEDY = "restore the folder as it was, or train without noise"


def require_one_budget(config: RunConfig, policy: Policy, data: str, clients: int, root: Path) -> None:
    """Refuse data, in a run with noise, if a different partitioning of them has spent budget.

    Raises:
        ConfigError: Other clients have spent budget of these data.
        LedgerError: A ledger is missing or damaged.
    """
    options = config.task_options
    noisy = config.privacy.unit != "none" or (options.count_offset and options.count_privacy.unit != "none")
    if data and not is_demo(data) and (noisy or policy.require_noise):
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
    own = partitioning.own_tables()
    if own and _released(partitioning.ledgers_of(partitioning.written_tables())):
        raise ConfigError(f"{_spent(data)} {count(partitioning.clients, 'client')} before each had a table; {REMEDY}")
    source = data.resolve()
    if not own and source.is_dir() and _released(table_ledgers(source)):
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

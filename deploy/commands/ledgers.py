"""Privacy ledgers on this machine: their statements, and increases of a limit by the owner."""

from pathlib import Path

from client.data.sources import fingerprint_of_all, is_demo
from client.privacy.claim import Statement
from client.privacy.claim import read_statements as statements_of
from client.privacy.ledger.locate import (
    LINEAGES,
    absolute_source,
    data_path,
    find_all_ledgers,
    find_ledger,
    rollback_path,
)
from client.privacy.ledger.raise_limit import increase_budget
from client.privacy.ledger.rollback import RollbackRecord, read_heads
from common.errors import ConfigError, DataError, LedgerError
from deploy.cli.options import LOCAL
from deploy.cli.output import note
from deploy.partitioning import PARTITIONS, STATE, partition_ledgers


def read_statements(data: str, state_dir: Path, ledgers: Path | None) -> tuple[list[Statement], list[LedgerError]]:
    """Return the statements, and the errors of unreadable ledgers."""
    folders = _lineage_folders(state_dir)
    places = list(_ledgers_of(data, state_dir, ledgers) if data else find_all_ledgers(folders))
    broken = [error for error in places if isinstance(error, LedgerError)]
    found: list[Statement] = []
    for path in sorted({path for path in places if isinstance(path, Path)}):
        try:
            found += statements_of(path, folders)
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
    for path in found:
        statements_of(
            path, _lineage_folders(state_dir)
        )  # an increase of an older copy would block the newest permanently
    unraised: list[ConfigError] = []
    for path in found:
        try:
            _raise_one(path, epsilon, data, state_dir)
        except ConfigError as error:
            unraised.append(error)
    if len(unraised) == len(found):
        raise unraised[0]
    for reason in unraised:
        note(str(reason))


def _raise_one(ledger: Path, epsilon: float, data: str, state_dir: Path) -> None:
    for row in increase_budget(ledger, epsilon, _rollback_record(ledger, data, state_dir)):
        limit = f"unit {row.unit}: ε = {row.raised.epsilon:g} instead of {row.raised.before:g}"
        note(f"{limit}, once max-epsilon in the client's policy file allows it")


def _rollback_record(ledger: Path, data: str, state_dir: Path) -> RollbackRecord:
    """Return the record of the ledger; a new one for data without state here."""
    records = [record for record, head in read_heads(_lineage_folders(state_dir)) if head.ledger == str(ledger)]
    return (
        records[0]
        if records
        else RollbackRecord(rollback_path(state_dir, fingerprint_of_all(data)), absolute_source(data))
    )


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

"""Errors of fedloom as one tree.

FedloomError
├── ConfigError          an option is unknown, mistyped or contradicts another
│   └── PackageError     code of an installed package fails, or breaks its contract (names the package)
├── DataError            a data file is missing, empty or malformed (names file, line and column)
│   ├── VocabularyError  the data contain names outside the federation's vocabulary
│   └── NothingYetError  the data have units, but no record to learn from
├── WireError            a message does not fit the schema (names payload and field)
├── RefusedError         the client's policy forbids what the server requests
├── StateError           private state on disk is unreadable or belongs to other data
│   ├── NewerFormatError a newer fedloom wrote the file
│   └── LedgerError      the privacy ledger is missing, damaged, rolled back or not writable; nothing is released
├── FullDiskError        a disk has too little room for a round; the work waits for more
├── ConnectError         the server is unreachable or refuses this client
├── QuorumError          too few clients replied for the round to count
├── BudgetSpentError     no further round is affordable or worth its cost; the run keeps its model
└── RunError             a run cannot continue: a process ended, training diverged, or a planner lacks metrics
"""

from pathlib import Path
from typing import Literal


class FedloomError(Exception):
    """Root of every error that fedloom raises on purpose; its text is written for users."""


class ConfigError(FedloomError):
    """Option that is unknown, mistyped or contradicts another."""


class PackageError(ConfigError):
    """Code of an installed package that fails, or that breaks the contract of plug-ins.

    Args:
        message: Package, fault and remedy, for the owner of this machine.
        public: The same without private data; empty for `message`.
    """

    def __init__(self, message: str, public: str = "") -> None:
        super().__init__(message)
        self.public = public or message


class DataError(FedloomError):
    """Data file that is missing, empty or malformed.

    Args:
        message: Fault and remedy.
        path: Data file; empty if unknown.
        line: One-based line of the fault in that file; 0 for the whole file.
        column: Name of the column; empty for the whole line.
        cell: Text of the cell, for the owner alone.
        unit: Noun of `line`; files of objects have rows.
    """

    def __init__(
        self,
        message: str,
        path: Path | str = "",
        line: int = 0,
        column: str = "",
        *,
        cell: str = "",
        unit: Literal["line", "row"] = "line",
    ) -> None:
        self.path, self.line, self.column, self.cell = str(path), line, column, cell
        where = ", ".join(
            p for p in (self.path, f"{unit} {line}" if line else "", f"column '{column}'" if column else "") if p
        )
        super().__init__(f"{where}: {message}" if where else message)


class VocabularyError(DataError):
    """Names in the data that are outside the federation's vocabulary."""


class NothingYetError(DataError):
    """Data with units but no record to learn from; such a client may join others, but cannot train alone."""


class WireError(FedloomError):
    """Message that does not fit the schema."""


class RefusedError(FedloomError):
    """Request that the client's policy forbids."""


PAUSED_BY_OWNER, ASKS_FORGETTING = "paused by its owner", "asks to be forgotten"
"""Reasons of a client that its owner has paused, and of one whose owner wants the server to forget it."""


class StateError(FedloomError):
    """Private state on disk that is unreadable or belongs to other data."""


class NewerFormatError(StateError):
    """File of a newer fedloom, whose format this one does not read."""


class LedgerError(StateError):
    """Privacy ledger that is missing, damaged, rolled back or not writable; nothing is released."""


class FullDiskError(FedloomError):
    """Disk with too little room for a round; the work waits for more."""


class ConnectError(FedloomError):
    """Server that is unreachable or refuses this client."""


class QuorumError(FedloomError):
    """Round with too few replies to count."""


class BudgetSpentError(FedloomError):
    """Further rounds that are unaffordable or not worth their cost; the run ends and keeps its model."""


class RunError(FedloomError):
    """Run that cannot continue: a process ended, training diverged, or a planner lacks metrics."""


def public_reason(error: BaseException) -> str:
    """Return the text about an error that the server may receive.

    Texts written here contain no private data and are sent; of every other error only the class name is sent.
    """
    if isinstance(error, DataError):
        return "this client's data cannot be read; see the client's log"
    if isinstance(error, PackageError):
        return error.public
    if isinstance(error, (StateError, ConfigError)):
        return "this client is not configured correctly; see the client's log"
    return str(error) if isinstance(error, FedloomError) else f"unexpected {type(error).__name__}; see the client's log"

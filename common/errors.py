"""What can go wrong, as one tree.

FedloomError
├── ConfigError          an option is unknown, mistyped or contradicts another
├── DataError            a data file is missing, empty or malformed (names file, line and column)
│   ├── VocabularyError  the data speak of what the federation's vocabulary lacks, or of another one
│   └── NothingYetError  there are people in the data, and nothing of theirs to learn from
├── WireError            a message does not fit the schema (names payload and field)
├── RefusedError         this client's own policy forbids what the server asked
├── StateError           private state on disk is unreadable or belongs to other data
│   └── LedgerError      the privacy ledger is missing, damaged, behind or cannot be written; nothing is released
├── ConnectError         the server cannot be reached, or does not let us in
├── QuorumError          too few clients answered for the round to count
├── BudgetSpentError     no further round can be paid, or is worth it; the model so far stands
└── RunError             a run cannot go on: a process ended, training diverges, or nobody tells what its plan needs
"""

from pathlib import Path
from typing import Literal


class FedloomError(Exception):
    """Root of every error that fedloom raises on purpose; its text is written for the person at the keyboard."""


class ConfigError(FedloomError):
    """An option is unknown, mistyped or contradicts another."""


class DataError(FedloomError):
    """A data file is missing, empty or malformed.

    Args:
        message: What is wrong and what to do about it.
        path: The file.
        line: One-based line in that file, 0 if the whole file is meant.
        column: Name of the column, empty if the whole line is meant.
        cell: Text of the cell, for the owner alone.
        unit: What `line` counts; rows in files without lines of text.
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
        place = ", ".join(
            p for p in (self.path, f"{unit} {line}" if line else "", f"column '{column}'" if column else "") if p
        )
        super().__init__(f"{place}: {message}" if place else message)


class VocabularyError(DataError):
    """The data speak of what the federation's vocabulary lacks, or of another one."""


class NothingYetError(DataError):
    """There are people in the data, and nothing of theirs to learn from: they may join others, and alone make no federation."""


class WireError(FedloomError):
    """A message does not fit the schema."""


class RefusedError(FedloomError):
    """This client's own policy forbids what the server asked."""


class StateError(FedloomError):
    """Private state on disk is unreadable or belongs to other data."""


class LedgerError(StateError):
    """The privacy ledger is missing, damaged, behind or cannot be written; nothing is released."""


class ConnectError(FedloomError):
    """The server cannot be reached, or does not let us in."""


class QuorumError(FedloomError):
    """Too few clients answered for the round to count."""


class BudgetSpentError(FedloomError):
    """No further round can be paid, or is worth it: the run ends early, with the model it has."""


class RunError(FedloomError):
    """A run cannot go on: a process ended, training diverges, or nobody tells what its plan needs."""


def public_reason(error: Exception) -> str:
    """What the server may be told: texts we wrote without private data in them, otherwise only the kind of error."""
    if isinstance(error, DataError):
        return "its data cannot be read; the client's own log says why"
    if isinstance(error, (StateError, ConfigError)):
        return "it is not set up right; the client's own log says why"
    return str(error) if isinstance(error, FedloomError) else f"{type(error).__name__}; the client's own log says more"

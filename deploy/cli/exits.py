"""Exit codes of `fedloom`, by class of error."""

from collections.abc import Mapping

from common.errors import (
    BudgetSpentError,
    ConfigError,
    ConnectError,
    DataError,
    FedloomError,
    LedgerError,
    QuorumError,
    RefusedError,
    RunError,
    StateError,
    WireError,
)

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

EXIT_CODES: Mapping[type[BaseException], int] = {
    FedloomError: 1,
    OSError: 1,  # a folder without write permission, a full disk
    RunError: 1,
    WireError: 1,
    ConfigError: 2,
    StateError: 2,
    DataError: 3,
    RefusedError: 4,
    LedgerError: 4,
    BudgetSpentError: 4,
    ConnectError: 5,
    QuorumError: 5,
    KeyboardInterrupt: INTERRUPTED,
}
"""Class -> exit code; a class without an entry has the code of its nearest base."""


def find_error_class(name: str) -> type[FedloomError]:
    """Return the class of that name in the tree of errors; RunError for a name without a class."""
    return next((kind for kind in list_errors() if kind.__name__ == name), RunError)


def list_errors(root: type[FedloomError] = FedloomError) -> list[type[FedloomError]]:
    """Return the classes of the tree of errors, its root included."""
    return [root, *(kind for child in root.__subclasses__() for kind in list_errors(child))]


def find_exit_code(error: BaseException) -> int | None:
    """Return the exit code of an error; None for an error that nobody expects."""
    return next((EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES), None)

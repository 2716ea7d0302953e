"""Exit codes of `fedloom`, by class of error."""

from collections.abc import Mapping

from common import errors
from common.errors import FedloomError, RunError

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

EXIT_CODES: Mapping[type[BaseException], int] = {
    FedloomError: 1,
    OSError: 1,  # a folder without write permission, a full disk
    RunError: 1,
    errors.WireError: 1,
    errors.ConfigError: 2,
    errors.StateError: 2,
    errors.DataError: 3,
    errors.RefusedError: 4,
    errors.LedgerError: 4,
    errors.BudgetSpentError: 4,
    errors.ConnectError: 5,
    errors.QuorumError: 5,
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

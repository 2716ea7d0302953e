"""Federated learning for private graphs and time series: the Python interface of fedloom.

Importing it is quick: each name loads its module on first use. The names of `__all__` are the promised interface; the
packages common, client, server and deploy may change between releases.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from common import errors

if TYPE_CHECKING:
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
    )
    from fedloom.federation import Federation
    from fedloom.methods import add_method
    from fedloom.processes import join, serve, sweep, up
    from fedloom.queries import DataReport, Recommendation, check
    from fedloom.runs import Run, compare, load_run
    from fedloom.training import simulate

_MODULES = {
    "DataReport": "fedloom.queries",
    "Federation": "fedloom.federation",
    "Recommendation": "fedloom.queries",
    "Run": "fedloom.runs",
    "add_method": "fedloom.methods",
    "check": "fedloom.queries",
    "compare": "fedloom.runs",
    "join": "fedloom.processes",
    "load_run": "fedloom.runs",
    "serve": "fedloom.processes",
    "simulate": "fedloom.training",
    "sweep": "fedloom.processes",
    "up": "fedloom.processes",
}
"""Name -> module that defines it."""

__all__ = [
    "BudgetSpentError",
    "ConfigError",
    "ConnectError",
    "DataError",
    "DataReport",
    "Federation",
    "FedloomError",
    "LedgerError",
    "QuorumError",
    "Recommendation",
    "RefusedError",
    "Run",
    "RunError",
    "StateError",
    "add_method",
    "check",
    "compare",
    "join",
    "load_run",
    "serve",
    "simulate",
    "sweep",
    "up",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'fedloom' has no attribute '{name}'")
    found = getattr(import_module(_MODULES[name]) if name in _MODULES else errors, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)

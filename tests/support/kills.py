"""Kills of a simulation at any of its steps, inside this process."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from deploy.simulation.grid import InProcessGrid
from deploy.simulation.state import LedgerFile
from server.record.folder import RunDirectory

STEPS: tuple[tuple[Any, str], ...] = (
    (os, "fsync"),
    (Path, "rename"),
    (Path, "replace"),
    (Path, "unlink"),
    (InProcessGrid, "push_messages"),
    (LedgerFile, "commit"),
    (RunDirectory, "append"),
)
"""Functions before which a simulation can be killed: all that write, and each exchange with the clients."""


class KilledError(BaseException):
    """Kill of the simulation; no handler of errors sees it."""


@dataclass
class Steps:
    """Steps of a simulation so far; before that of number `last`, it is killed."""

    last: int = 0
    names: list[str] = field(default_factory=list)

    def wrap(self, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function as a step."""

        def counted(*arguments: Any, **options: Any) -> Any:
            self.names.append(name)
            if len(self.names) == self.last:
                raise KilledError(f"{name}, step {self.last}")
            return step(*arguments, **options)

        return counted


@contextmanager
def killed_at(last: int = 0) -> Iterator[Steps]:
    """Count the steps in the block, and end it before that of number `last`."""
    steps = Steps(last)
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in STEPS:
            patch.setattr(owner, name, steps.wrap(name, getattr(owner, name)))
        try:
            yield steps
        except KilledError:
            assert last

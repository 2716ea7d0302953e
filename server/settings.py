"""Settings from the server's environment: the folders of runs and of keys."""

import os
from dataclasses import dataclass, field
from pathlib import Path


def _read_folder(variable: str) -> Path | None:
    return Path(text) if (text := os.environ.get(variable)) else None


@dataclass(frozen=True)
class ServerSettings:
    """Values of `FEDLOOM_*` variables, read without pydantic-settings, whose import is slow."""

    runs: Path = field(default_factory=lambda: Path(os.environ.get("FEDLOOM_RUNS") or "runs"))
    """Folder with one folder per run."""

    nodes: Path | None = field(default_factory=lambda: _read_folder("FEDLOOM_NODES"))
    """Folder with the names of clients by their keys; None if names are not bound to keys."""

    processes: Path | None = field(default_factory=lambda: _read_folder("FEDLOOM_PROCESSES"))
    """Folder of the records of this federation's processes; None if nobody stops them by records."""

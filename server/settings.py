"""Settings from the server's environment: the folders of runs and of keys."""

import os
from dataclasses import dataclass, field
from pathlib import Path


def _read_runs() -> Path:
    return Path(os.environ.get("FEDLOOM_RUNS") or "runs")


@dataclass(frozen=True)
class ServerSettings:
    """Values of `FEDLOOM_*` variables, read without pydantic-settings, whose import is slow."""

    runs: Path = field(default_factory=_read_runs)
    """Folder with one folder per run."""

    nodes: Path | None = None
    """Folder with the names of clients by their keys; None if names are not bound to keys."""

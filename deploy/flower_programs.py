"""Flower's programs of this Python, and their environment."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def flower_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a Flower process, based on that of this process.

    Telemetry and installations at run time are off; programs of this Python come first.
    """
    programs = str(Path(sys.executable).parent)
    quiet = ("FLWR_DISABLE_UPDATE_CHECK", "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION")
    return {
        **os.environ,
        **dict.fromkeys(quiet, "1"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "PATH": os.pathsep.join((programs, os.environ.get("PATH", os.defpath))),
        **(extra or {}),
    }


def flower_program(name: str) -> Path:
    """Return the program of that name that belongs to this Python."""
    return Path(sys.executable).parent / name

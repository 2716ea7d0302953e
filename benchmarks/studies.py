"""What the studies that write results pages share: where data, cache and results lie, and how a page says what made it."""

import argparse
import json
import logging
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from benchmarks.memory import RUNS, Memory
from server.artifacts import RunDirectory

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("FEDLOOM_SHARED_DATA", ROOT.parent / "shared" / "data"))
PACKAGES = ("fedloom", "flwr", "torch", "torch-geometric", "numpy")


def quietly() -> None:
    """One thread, and no log lines among the study's own."""
    torch.set_num_threads(1)
    for name in ("flwr", "fedloom"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def parser(study: str, about: str | None, rows: Sequence[str], seeds: int) -> argparse.ArgumentParser:
    """The options that every study has.

    Args:
        study: Name of its package, of its cache and of its results.
        about: Its docstring.
        rows: Keys of its experiments.
        seeds: Default number of seeds.
    """
    options = argparse.ArgumentParser(prog=f"python -m benchmarks.{study}", description=about)
    cache = ROOT / "runs" / f"bench-{study}"
    options.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    options.add_argument(
        "--cache", type=Path, default=cache, help="results that no page holds yet; a killed study goes on"
    )
    options.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help=f"folder of {study}.md and .json")
    options.add_argument("--seeds", type=int, default=seeds, help="seeds 0 to N−1")
    options.add_argument("--only", nargs="*", choices=list(rows), help="fill the cache with these rows; write nothing")
    options.add_argument("--table-only", action="store_true", help="compute nothing, write what is known")
    return options


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, ["---"] * len(header), *rows])


@contextmanager
def passing(root: Path, run: str) -> Iterator[RunDirectory]:
    """A run's folder for as long as the run is looked at: nothing is there before, and nothing after, however it ended."""
    folder = RunDirectory(root, run)
    shutil.rmtree(folder.path, ignore_errors=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder.path, ignore_errors=True)


def provenance(study: str) -> tuple[dict[str, Any], str]:
    """What made a page: as data, and as its first sentence."""
    versions = {**{name: version(name) for name in PACKAGES}, "python": platform.python_version()}
    command = shlex.join(["python", "-m", f"benchmarks.{study}", *sys.argv[1:]])
    made = datetime.now(UTC).isoformat(timespec="seconds")
    named = ", ".join(f"{name} {number}" for name, number in versions.items())
    sentence = (
        f"Made by `{command}` at {made}, not edited by hand. {named}; {os.cpu_count()} shared CPU cores, one thread a run. "
        f"Every seed's figures are in `{study}.json`."
    )
    return {"command": command, "made": made, "versions": versions, "cores": os.cpu_count()}, sentence


def write(folder: Path, study: str, about: dict[str, Any], memory: Memory, page: str) -> None:
    """The page, and as JSON everything that it was made of."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {**about, RUNS: dict(sorted(memory.used.items()))}
    (folder / f"{study}.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    (folder / f"{study}.md").write_text(page, "utf-8")

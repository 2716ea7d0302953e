"""`python -m benchmarks.sessions`: compute what the cache lacks, then write docs/results/sessions.md and sessions.json."""

import argparse
import json
import logging
import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch

from benchmarks.sessions.experiments import EXPERIMENTS, TUNING_SEED
from benchmarks.sessions.sets import SETTINGS
from benchmarks.sessions.study import Study, study
from benchmarks.sessions.table import page
from benchmarks.sessions.training import Bench

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDLOOM_SHARED_DATA", ROOT.parent / "shared" / "data"))


def main() -> None:
    """Compute and write."""
    options = _options()
    torch.set_num_threads(1)
    for name in ("flwr", "fedloom"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    by_key = {experiment.key: experiment for experiment in EXPERIMENTS}
    chosen = [by_key[key] for key in (by_key if options.only is None else options.only)]
    studies = []
    for setting in SETTINGS:
        if setting.key in options.sets:
            bench = Bench(setting, options.data, options.cache, compute=not options.table_only)
            studies.append(study(bench, chosen, range(options.seeds)))
    if options.only is None:
        _write(options.out, studies)


def _write(folder: Path, studies: list[Study]) -> None:
    packages = ("fedloom", "flwr", "torch", "torch-geometric", "numpy")
    versions = {**{name: version(name) for name in packages}, "python": platform.python_version()}
    command = shlex.join(["python", "-m", "benchmarks.sessions", *sys.argv[1:]])
    made = datetime.now(UTC).isoformat(timespec="seconds")
    named = ", ".join(f"{name} {number}" for name, number in versions.items())
    made_by = (
        f"Made by `{command}` at {made}, not edited by hand. {named}; {os.cpu_count()} shared CPU cores, one thread a run. "
        "Every seed's figures are in `sessions.json`."
    )
    about = {"command": command, "made": made, "versions": versions, "tuning_seed": TUNING_SEED}
    folder.mkdir(parents=True, exist_ok=True)
    document = {**about, "sets": [one.as_json() for one in studies]}
    (folder / "sessions.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    (folder / "sessions.md").write_text(page(studies, made_by), "utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument(
        "--cache", type=Path, default=ROOT / "runs" / "bench-sessions", help="results so far; a killed study goes on"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help="folder of sessions.md and .json")
    parser.add_argument("--sets", nargs="+", choices=[s.key for s in SETTINGS], default=[s.key for s in SETTINGS])
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0 to N−1")
    parser.add_argument(
        "--only", nargs="*", choices=[e.key for e in EXPERIMENTS], help="fill the cache with these rows; write nothing"
    )
    parser.add_argument("--table-only", action="store_true", help="compute nothing, write what the cache holds")
    return parser.parse_args()


if __name__ == "__main__":
    main()

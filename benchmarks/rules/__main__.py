"""`python -m benchmarks.rules`: compute what the cache lacks, then write docs/results/rules.md and rules.json."""

import argparse
import json
import logging
import os
import platform
import shlex
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch

from benchmarks.rules.experiments import EXPERIMENTS, TUNING_SEED
from benchmarks.rules.study import Study, study
from benchmarks.rules.table import SETUPS, page
from benchmarks.rules.training import Bench

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDLOOM_SHARED_DATA", ROOT.parent / "shared" / "data")) / "ifttt-recrules"


def main() -> None:
    """Compute and write."""
    options = _options()
    torch.set_num_threads(1)
    for name in ("flwr", "fedloom"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    by_key = {experiment.key: experiment for experiment in EXPERIMENTS}
    chosen = [by_key[key] for key in (by_key if options.only is None else options.only)]
    studies = []
    for setup in options.setups:
        bench = Bench(options.data, setup, options.cache, compute=not options.table_only)
        studies.append(study(bench, chosen, range(options.seeds)))
    if options.only is None:
        _write(options.out, studies)


def _write(folder: Path, studies: list[Study]) -> None:
    packages = ("fedloom", "flwr", "torch", "torch-geometric", "numpy")
    versions = {**{name: version(name) for name in packages}, "python": platform.python_version()}
    seconds = sum(sum(row.seconds) for study in studies for row in study.rows)
    command, made = (
        shlex.join(["python", "-m", "benchmarks.rules", *sys.argv[1:]]),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )
    named = ", ".join(f"{name} {number}" for name, number in versions.items())
    made_by = (
        f"Made by `{command}` at {made}, not edited by hand. {named}; {os.cpu_count()} shared CPU cores, one thread a run, "
        f"{seconds:.0f} s behind the reported seeds. Every seed's figures are in `rules.json`."
    )
    about = {
        "command": command,
        "made": made,
        "versions": versions,
        "cores": os.cpu_count(),
        "tuning_seed": TUNING_SEED,
    }
    folder.mkdir(parents=True, exist_ok=True)
    document = {**about, "seconds": round(seconds), "setups": [asdict(study) for study in studies]}
    (folder / "rules.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    (folder / "rules.md").write_text(page(studies, made_by), "utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rules", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the RecRules set")
    parser.add_argument(
        "--cache", type=Path, default=ROOT / "runs" / "bench-rules", help="results so far; a killed run goes on"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help="folder of rules.md and rules.json")
    parser.add_argument("--setups", nargs="+", choices=list(SETUPS), default=list(SETUPS))
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0 to N−1")
    parser.add_argument(
        "--only", nargs="*", choices=[e.key for e in EXPERIMENTS], help="fill the cache with these rows; write nothing"
    )
    parser.add_argument("--table-only", action="store_true", help="compute nothing, write what the cache holds")
    return parser.parse_args()


if __name__ == "__main__":
    main()

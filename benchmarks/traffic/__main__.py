"""`python -m benchmarks.traffic`: compute what the cache lacks, then write docs/results/traffic.md and traffic.json."""

import argparse
import json
import logging
import os
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch

from benchmarks.traffic.experiments import EXPERIMENTS
from benchmarks.traffic.faults import faults
from benchmarks.traffic.sets import SETTINGS
from benchmarks.traffic.study import Bench
from benchmarks.traffic.table import broken_sensors, page, section

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDLOOM_SHARED_DATA", ROOT.parent / "shared" / "data"))


def main() -> None:
    """Compute and write."""
    options = _options()
    torch.set_num_threads(1)
    for name in ("flwr", "fedloom"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    sections, rows = [], {}
    for setting in SETTINGS:
        if setting.key in options.sets:
            bench = Bench(setting, options.data, options.cache, compute=not options.table_only)
            known = [bench.row(one, range(options.seeds)) for one in EXPERIMENTS if one.key in options.only]
            lines = {kind: bench.ridge(kind) for kind in ("paper", "calibrated")}
            sections.append(section(setting, [row for row in known if row.seeds], lines))
            if not options.table_only or (options.cache / f"{setting.key}-faults").is_dir():
                sections.append(broken_sensors(faults(setting, options.data, options.cache)))
            rows[setting.key] = {row.key: row.seeds for row in known}
    command = shlex.join(["python", "-m", "benchmarks.traffic", *sys.argv[1:]])
    made = datetime.now(UTC).isoformat(timespec="seconds")
    versions = {name: version(name) for name in ("fedloom", "flwr", "torch", "numpy")}
    if len(options.only) == len(EXPERIMENTS):
        options.out.mkdir(parents=True, exist_ok=True)
        document = {"command": command, "made": made, "versions": versions, "sets": rows}
        (options.out / "traffic.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
        named = ", ".join(f"{name} {number}" for name, number in versions.items())
        made_by = (
            f"Made by `{command}` at {made}, not edited by hand. {named}; {os.cpu_count()} shared cores, one thread."
        )
        (options.out / "traffic.md").write_text(page(made_by, sections), "utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.traffic", description=__doc__)
    keys, sets = [one.key for one in EXPERIMENTS], [setting.key for setting in SETTINGS]
    cache = ROOT / "runs" / "bench-traffic"
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--cache", type=Path, default=cache, help="results so far; a killed study goes on")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help="folder of traffic.md and .json")
    parser.add_argument("--sets", nargs="+", choices=sets, default=sets)
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0 to N−1")
    parser.add_argument(
        "--only", nargs="+", choices=keys, default=keys, help="fill the cache with these; write nothing"
    )
    parser.add_argument("--table-only", action="store_true", help="compute nothing, write what the cache holds")
    return parser.parse_args()


if __name__ == "__main__":
    main()

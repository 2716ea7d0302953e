"""Command line of the study of secure sums: `python -m benchmarks.secure run|page`."""

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.secure.cost import CASES, measure
from benchmarks.secure.memory import measure_peak
from benchmarks.secure.page import write_page

RESULTS, PAGE = Path("docs/results/secure.json"), Path("docs/results/secure.md")
SIZES = (10**5, LARGEST := 10**6)
"""Sizes of vectors at which the memory of a helper is measured."""

TURNS = 5
"""Number of turns of a case below `LARGEST`; the least times are kept, since other work slows a turn."""


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.secure", description=__doc__)
    parser.add_argument("command", choices=("run", "page"))
    options = parser.parse_args()
    if options.command == "run":
        run()
    PAGE.write_text(write_page(json.loads(RESULTS.read_text())), "utf-8")
    print(PAGE)


def run() -> None:
    """Measure all cases and the memory of a helper, and store them."""
    rows, loads = [], []
    for case in CASES:
        turns = [measure(case) for _ in range(TURNS if case.numbers < LARGEST else 1)]
        rows.append({**asdict(case), **{work: min(turn[work] for turn in turns) for work in turns[0]}})
        loads.append(os.getloadavg()[0])
        print(rows[-1], flush=True)
    about = {"cores": os.cpu_count(), "load": round(sum(loads) / len(loads), 1), "date": time.strftime("%Y-%m-%d")}
    stored = {**about, "rows": rows, "memory_mb": {str(size): measure_peak(size) for size in SIZES}}
    RESULTS.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

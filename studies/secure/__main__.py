"""Command line of the study of secure sums: `python -m studies.secure run [PART ...]|page`."""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from studies.secure import kills
from studies.secure.cost import CASES, measure
from studies.secure.memory import measure_peak
from studies.secure.norms import compare_proofs
from studies.secure.page import write_page
from studies.secure.rounds import count_numbers, measure_rounds

RESULTS, PAGE = Path("docs/results/secure.json"), Path("docs/results/secure.md")
SIZES = (10**5, LARGEST := 10**6)
"""Sizes of vectors at which the memory of a helper is measured."""

TURNS = 5
"""Number of turns of a case below `LARGEST`; the least times are kept, since other work slows a turn."""


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m studies.secure", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("page", help="remake the page from the stored results")
    run = commands.add_parser("run", help="measure, store the results and remake the page")
    run.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}; default: all")
    options = parser.parse_args()
    stored = json.loads(RESULTS.read_text())
    if options.command == "run":
        if unknown := set(options.parts) - PARTS.keys():
            parser.error(f"unknown part '{min(unknown)}'")
        for name in options.parts or PARTS:
            stored |= PARTS[name]()
            RESULTS.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
    PAGE.write_text(write_page(stored), "utf-8")
    print(PAGE)


def _measure_cost() -> dict[str, Any]:
    """Measure all cases, and the memory of a helper."""
    rows, loads = [], []
    for case in CASES:
        turns = [measure(case) for _ in range(TURNS if case.numbers < LARGEST else 1)]
        rows.append({**asdict(case), **{work: min(turn[work] for turn in turns) for work in turns[0]}})
        loads.append(os.getloadavg()[0])
        print(rows[-1], flush=True)
    about = {"cores": os.cpu_count(), "load": round(sum(loads) / len(loads), 1), "date": time.strftime("%Y-%m-%d")}
    return {**about, "remark": "", "rows": rows, "memory_mb": {str(size): measure_peak(size) for size in SIZES}}


def _inflict_kills() -> dict[str, Any]:
    return {"kills": kills.run()}


def _time_rounds() -> dict[str, Any]:
    return {"rounds": measure_rounds(), "round_numbers": count_numbers()}


def _compare_proofs() -> dict[str, Any]:
    return {"proofs": compare_proofs()}


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "proofs": _compare_proofs,
    "cost": _measure_cost,
    "rounds": _time_rounds,
    "kills": _inflict_kills,
}


if __name__ == "__main__":
    main()

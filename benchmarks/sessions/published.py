"""`python -m benchmarks.sessions.published`: our SR-GNN, trained centrally as its authors did, beside their figures.

This is how we know that the model is right. Width 100, Adam 1e-3 (a tenth after three epochs), L2 1e-5, batches of 100; on the
sets as SR-GNN's own preprocessing leaves them, whole. Test cases that ask for items nobody trained on cannot be asked here:
their share is in the table, and counting them as misses lowers HR by that share. Prints a table and writes JSON; an epoch takes
minutes.
"""

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.sessions.central import Central
from benchmarks.studies import DATA, ROOT
from client.tasks.sessions.data.reader import read_visitors
from client.tasks.sessions.data.split import split_visitor
from common.tasks.sessions.options import SessionsOptions

PUBLISHED = {"yoochoose1_64": (0.7057, 0.3094, 55_898), "diginetica": (0.5073, 0.1759, 60_858)}
"""SR-GNN's HR@20, MRR@20 and test cases (algorithms.md §2.8)."""

NOTHING_CUT_OFF = 1e-9
"""Share of sessions held out: these sets bring their own test cases."""


@dataclass(frozen=True)
class Check:
    """One set."""

    set: str
    examples: int
    cases: int
    curve: dict[str, dict[str, float]]
    """Epoch -> metrics on the test cases; no epoch is chosen by them, the last one is the result."""
    seconds: float


def check(name: str, folder: Path, epochs: int) -> Check:
    """Train on the whole set."""
    started, options = time.perf_counter(), SessionsOptions(hidden=100, test_share=NOTHING_CUT_OFF)
    whole = read_visitors(folder / name)
    splits = [split_visitor(visitor, options, 0) for visitor in whole.units]
    examples = sum(len(session) - 1 for split in splits for session in split.train)
    curve = Central(splits, len(whole.vocabulary.items), options, 1e-3, epochs, 0).run(validation=False)
    cases = sum(len(split.test) for split in splits)
    return Check(name, examples, cases, curve, time.perf_counter() - started)


def main() -> None:
    """Train, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--sets", nargs="+", choices=list(PUBLISHED), default=["yoochoose1_64"])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "sessions_published.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    checks = [check(name, options.data, options.epochs) for name in options.sets]

    table = Table("set", "examples", "test cases asked", "epochs", "HR@20", "published", "MRR@20", "published", "s")
    for one in checks:
        (hr, mrr, cases), last = PUBLISHED[one.set], one.curve[str(options.epochs)]
        asked = f"{one.cases} ({one.cases / cases:.1%})"
        ours = f"{last['hr20']:.4f}", f"{hr:.4f}", f"{last['mrr20']:.4f}", f"{mrr:.4f}"
        table.add_row(one.set, str(one.examples), asked, str(options.epochs), *ours, f"{one.seconds:.0f}")
    Console().print(table)
    about = {"cores": os.cpu_count(), "torch": torch.__version__, "seed": 0, "published": PUBLISHED}
    options.out.write_text(json.dumps({**about, "checks": [asdict(one) for one in checks]}, indent=1) + "\n")


if __name__ == "__main__":
    main()

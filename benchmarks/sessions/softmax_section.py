"""Section of the sessions page on sampled softmax: its accuracy beside the full one, and its cost."""

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.results import Results
from benchmarks.harness.row import Row, mean
from benchmarks.harness.study import RESULTS
from benchmarks.harness.table import Table
from benchmarks.sessions import prose
from benchmarks.sessions.experiments import SAMPLED
from benchmarks.sessions.sets import SETTINGS

COST = RESULTS / "sampled_softmax.json"
"""Results of `python -m benchmarks speed sampled_softmax`."""


def section(results: Results, cost: Path = COST) -> Iterator[str]:
    """Yield the section; nothing without rows."""
    table = Table(["set", "method", "rounds", "seeds", "HR@20, full", "HR@20, sampled", "difference by seed, points"])
    for setting in SETTINGS:
        measured = results.rows_of(setting.key)
        for one in SAMPLED:
            full, sampled = measured.get(one.key.removesuffix("-sampled")), measured.get(one.key)
            if full and sampled:
                table.rows.append([setting.key, full.title, *_compare(full, sampled)])
    if table.rows:
        yield f"## Sampled softmax\n\n{prose.SAMPLED}\n\n{table}"
        yield from _costs(cost)


def _compare(full: Row, sampled: Row) -> list[str]:
    """Return the cells of two rows, at the last round of the sampled one."""
    seeds = sorted(full.trials.keys() & sampled.trials.keys())
    rounds = max(max(sampled.trials[seed].curve) for seed in seeds)
    hits = [[100 * row.trials[seed].curve[rounds]["hr20"] for seed in seeds] for row in (full, sampled)]
    differences = ", ".join(f"{own - other:+.2f}" for other, own in zip(*hits, strict=True))
    return [str(rounds), str(len(seeds)), *(f"{mean(values):.1f}" for values in hits), differences]


def _costs(path: Path) -> Iterator[str]:
    if not path.exists():
        return
    table = Table(["softmax", "items", "clients a round", "kB up a client", "CPU s a round", "peak MB"])
    for row in json.loads(path.read_text("utf-8"))["rows"]:
        sizes = f"{row['items']:,}", f"{row['answered']:.0f} of {row['clients']:,}", f"{row['kb_up_per_client']:,.0f}"
        table.rows.append([row["loss"], *sizes, f"{row['cpu_seconds_per_round']:.2f}", f"{row['peak_mb']:,.0f}"])
    yield f"{prose.COST}\n\n{table}"

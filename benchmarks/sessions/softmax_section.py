"""Section of the sessions page on sampled softmax: its accuracy beside the full one, and its cost."""

import json
from collections.abc import Iterator

from benchmarks.harness.results import Results
from benchmarks.harness.row import mean_sd
from benchmarks.harness.study import RESULTS
from benchmarks.harness.table import Table
from benchmarks.sessions import prose
from benchmarks.sessions.experiments import SAMPLED
from benchmarks.sessions.sets import SETTINGS

KEYS = frozenset(one.key for one in SAMPLED)
"""Rows that this section shows, and no other."""

COST = RESULTS / "sampled_softmax.json"
"""Results of `python -m benchmarks speed sampled_softmax`."""


def section(results: Results) -> Iterator[str]:
    """Yield the section; nothing without rows."""
    table = Table(["set", "method", "HR@20, full", "HR@20, sampled", "difference by seed, points"])
    for setting in SETTINGS:
        measured = results.rows_of(setting.key)
        for key in sorted(KEYS & measured.keys()):
            full, sampled = measured[key.removesuffix("-sampled")], measured[key]
            seeds = sorted(sampled.trials.keys() & full.trials.keys())
            by_seed = {
                seed: 100 * (sampled.trials[seed].metrics["hr20"] - full.trials[seed].metrics["hr20"]) for seed in seeds
            }
            hits = [
                mean_sd([row.trials[seed].metrics["hr20"] for seed in seeds], 1, scale=100) for row in (full, sampled)
            ]
            differences = ", ".join(f"{by_seed[seed]:+.1f}" for seed in seeds)
            table.rows.append([setting.key, full.title, *hits, differences])
    if table.rows:
        yield f"## Sampled softmax\n\n{prose.SAMPLED}\n\n{table}"
        yield from _costs()


def _costs() -> Iterator[str]:
    if not COST.exists():
        return
    table = Table(["softmax", "items", "clients a round", "kB up a client", "CPU s a round", "peak MB"])
    for row in json.loads(COST.read_text("utf-8"))["rows"]:
        sizes = f"{row['items']:,}", f"{row['answered']:.0f} of {row['clients']:,}", f"{row['kb_up_per_client']:,.0f}"
        table.rows.append([row["loss"], *sizes, f"{row['cpu_seconds_per_round']:.2f}", f"{row['peak_mb']:,.0f}"])
    yield f"{prose.COST}\n\n{table}"

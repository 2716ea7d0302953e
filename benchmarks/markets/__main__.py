"""`python -m benchmarks.markets`: compute what the cache lacks, then write docs/results/markets.md and markets.json."""

import argparse
from collections.abc import Iterable, Sequence
from typing import TypeVar

from benchmarks.markets.claims import of_cold, of_default, of_joiners, of_pairs
from benchmarks.markets.experiments import EXPERIMENTS, RATES, Experiment
from benchmarks.markets.joining import KINDS, cold, late
from benchmarks.markets.lines import TITLES
from benchmarks.markets.sets import MARKETS, PROTOCOLS, SMALL
from benchmarks.markets.study import Bench, Metrics
from benchmarks.markets.table import (
    NOT_RUN,
    Row,
    cold_section,
    introduction,
    late_section,
    protocol_section,
)
from benchmarks.memory import Memory
from benchmarks.studies import parser, provenance, quietly, write

T = TypeVar("T")

Rows = dict[str, dict[str, Row]]
"""Protocol -> key -> row."""


def main() -> None:
    """Compute and write."""
    arguments = parser("markets", __doc__, [one.key for one in EXPERIMENTS], seeds=3)
    arguments.add_argument("--protocols", nargs="+", choices=list(PROTOCOLS), default=list(PROTOCOLS))
    options = arguments.parse_args()
    quietly()
    bench = Bench(options.data, Memory.of("markets", options))
    chosen = [one for one in EXPERIMENTS if options.only is None or one.key in options.only]
    joined = {kind: _seeds(bench, kind, options) for kind in KINDS} if options.only is None else {}
    joiners = {name: _known(late(bench, name, seed) for seed in range(options.seeds)) for name in SMALL if joined}
    rows = _rows(bench, chosen, options)
    if options.only is None:
        _write(bench, options, rows, joined, joiners)


def _seeds(bench: Bench, kind: str, options: argparse.Namespace) -> dict[str, list[Metrics]]:
    return {name: _known(cold(bench, name, kind, seed) for seed in range(options.seeds)) for name in SMALL}


def _rows(bench: Bench, chosen: Sequence[Experiment], options: argparse.Namespace) -> Rows:
    """Breadth first, so that a study cut short has few seeds rather than few rows."""
    titles = {**TITLES, **{one.key: one.title for one in chosen}}
    rows: Rows = {p: {key: Row(key, title) for key, title in titles.items()} for p in PROTOCOLS}
    for seed in range(options.seeds):
        for protocol in options.protocols:
            for key, found in bench.lines(protocol, seed).items():
                rows[protocol][key].seeds[seed] = found
            for one in chosen:
                if told := bench.trial(one, protocol, seed):
                    rows[protocol][one.key].seeds[seed] = told
    return {p: {key: row for key, row in each.items() if row.seeds} for p, each in rows.items()}


def _write(
    bench: Bench,
    options: argparse.Namespace,
    rows: Rows,
    joined: dict[str, dict[str, list[Metrics]]],
    joiners: dict[str, list[dict[str, Metrics]]],
) -> None:
    about, made_by = provenance("markets")
    rates = {one.title: rate for one in EXPERIMENTS if one.tuned and (rate := bench.rate(one))}
    parts = [introduction(made_by, options.seeds, RATES, rates)]
    parts += cold_section(joined)
    parts += late_section(joiners)
    for protocol, each in rows.items():
        if each:
            parts += protocol_section(protocol, list(each.values()), MARKETS)
    told = [line for kind, markets in joined.items() for line in of_cold(kind, markets)]
    beside = [line for protocol, each in rows.items() for line in of_default(PROTOCOLS[protocol], each)]
    parts += [
        "## What the tables say of the targets",
        "\n".join([*told, *of_joiners(joiners), *beside, *of_pairs(rows["pairs"])]),
        _short(rows, options.seeds),
        NOT_RUN,
    ]
    write(options.out, "markets", about, bench.memory, "\n\n".join(part for part in parts if part) + "\n")


def _short(rows: Rows, seeds: int) -> str:
    """Which rows have fewer seeds than planned, or none."""
    wanted = [*TITLES, *(one.key for one in EXPERIMENTS)]
    counts = {p: {key: len(rows[p][key].seeds) if key in rows[p] else 0 for key in wanted} for p in PROTOCOLS}
    parts = [
        f"{protocol}, {done} of {seeds}: {', '.join(missing)}"
        for protocol, found in counts.items()
        for done in range(seeds)
        if (missing := [key for key, count in found.items() if count == done])
    ]
    return f"**Fewer seeds than planned so far** (keys as in `--only`). {'; '.join(parts)}." if parts else ""


def _known(found: Iterable[T]) -> list[T]:
    """Those that are not empty."""
    return [each for each in found if each]


if __name__ == "__main__":
    main()
